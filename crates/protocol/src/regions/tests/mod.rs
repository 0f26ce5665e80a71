//! Both protocols with regions that lend their memory and take answers, and without any.

mod models;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_proto::inference::{
    InferParameter, ModelInferRequest,
    infer_parameter::ParameterChoice::{self, Int64Param, StringParam},
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_types::{
    Buffer, Code, DataType, Error, InferRequest, InferResponse, LockExt, Memory, Region, Result,
    Tensor,
};
use prost::Message as _;

use super::{NoRegions, Regions};
use crate::{AnswerForm, AnswerPlan, grpc, http};

/// One region, `r`: what it held first, and what was written to it. Both are lent without a copy.
#[derive(Debug)]
struct Shared {
    content: Buffer,
    written: Mutex<Vec<(u64, Buffer)>>,
}

impl Region for Shared {
    fn memory(&self) -> Memory {
        Memory::Host
    }

    fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer> {
        let written = self.written.lock_unpoisoned();
        let is_there =
            |(at, data): &&(u64, Buffer)| (*at, data.len() as u64) == (offset, byte_size);
        if let Some((_, data)) = written.iter().rev().find(is_there) {
            return Ok(data.clone());
        }
        let start = usize::try_from(offset).ok();
        let end = offset.checked_add(byte_size).and_then(|end| usize::try_from(end).ok());
        let range = start.zip(end).map(|(start, end)| start..end);
        range.and_then(|range| self.content.slice(range)).ok_or_else(|| {
            Error::invalid_arg("Invalid offset + byte size for shared memory region: 'r'")
        })
    }

    fn write(&self, offset: u64, data: &Buffer) -> Result<()> {
        self.written.lock_unpoisoned().push((offset, data.host()?.to_vec().into()));
        Ok(())
    }
}

struct OneRegion(Arc<Shared>);

impl OneRegion {
    fn new() -> Self {
        let content = Buffer::from((0..64).collect::<Vec<u8>>());
        Self(Arc::new(Shared { content, written: Mutex::default() }))
    }

    fn written(&self) -> Vec<(u64, Vec<u8>)> {
        let written = self.0.written.lock_unpoisoned();
        written.iter().map(|(at, data)| (*at, host(data).to_vec())).collect()
    }
}

impl Regions for OneRegion {
    fn find(&self, name: &str) -> Result<Arc<dyn Region>> {
        if name == "r" { Ok(self.0.clone()) } else { NoRegions.find(name) }
    }
}

fn config() -> ModelConfig {
    testing::model_config(
        "backend: 'identity'
         input { name: 'IN' data_type: TYPE_UINT8 dims: -1 }
         output { name: 'OUT' data_type: TYPE_UINT8 dims: -1 }",
    )
}

fn host(buffer: &Buffer) -> &[u8] {
    buffer.host().expect("host memory")
}

type Decoded = Result<(InferRequest, AnswerPlan)>;

/// A request over HTTP whose input and output have these parameters.
fn over_http(input: &str, output: &str, regions: &dyn Regions) -> Decoded {
    let json = format!(
        r#"{{"inputs":[{{"name":"IN","shape":[4],"datatype":"UINT8","parameters":{{{input}}}}}],
            "outputs":[{{"name":"OUT","parameters":{{{output}}}}}]}}"#
    );
    let body = Bytes::from([json.as_bytes(), &[7; 4]].concat());
    let tail = if input.contains("binary_data_size") { 4 } else { 0 };
    let body = body.slice(0..json.len() + tail);
    http::decode(&body, json.len(), &config(), None, regions)
}

type Parameters<'a> = &'a [(&'a str, ParameterChoice)];

/// The same over gRPC.
fn over_grpc(input: Parameters<'_>, output: Parameters<'_>, regions: &dyn Regions) -> Decoded {
    let parameters = |given: Parameters<'_>| {
        let parameter =
            |choice: &ParameterChoice| InferParameter { parameter_choice: Some(choice.clone()) };
        given.iter().map(|(key, choice)| ((*key).to_owned(), parameter(choice))).collect()
    };
    let message = ModelInferRequest {
        inputs: vec![InferInputTensor {
            name: "IN".into(),
            datatype: "UINT8".into(),
            shape: vec![4],
            parameters: parameters(input),
            ..Default::default()
        }],
        outputs: vec![InferRequestedOutputTensor {
            name: "OUT".into(),
            parameters: parameters(output),
        }],
        raw_input_contents: if input.is_empty() {
            vec![Bytes::from_static(&[7; 4])]
        } else {
            vec![]
        },
        ..Default::default()
    };
    grpc::decode(grpc_message(&message), &config(), regions)
}

/// The message over the wire.
fn grpc_message(message: &ModelInferRequest) -> grpc::RequestMessage {
    let pieces = grpc::Pieces::from(Bytes::from(message.encode_to_vec()));
    grpc::RequestMessage::read(pieces).expect("a good message")
}

fn region(offset: i64, byte_size: i64) -> [(&'static str, ParameterChoice); 3] {
    [
        ("shared_memory_region", StringParam("r".into())),
        ("shared_memory_offset", Int64Param(offset)),
        ("shared_memory_byte_size", Int64Param(byte_size)),
    ]
}

const IN_REGION: &str =
    r#""shared_memory_region":"r","shared_memory_offset":8,"shared_memory_byte_size":4"#;
const IN_BODY: &str = r#""binary_data_size":4"#;

fn response(bytes: u8) -> InferResponse {
    InferResponse {
        model_name: "m".into(),
        model_version: 1,
        id: String::new(),
        parameters: Vec::new(),
        outputs: vec![Tensor::new(
            "OUT",
            DataType::Uint8,
            [i64::from(bytes)],
            vec![9; bytes.into()],
        )],
    }
}

#[test]
fn inputs_share_the_memory_of_their_region() {
    let regions = OneRegion::new();
    for decoded in [over_http(IN_REGION, "", &regions), over_grpc(&region(8, 4), &[], &regions)] {
        let (request, _) = decoded.expect("the region is there");
        let memory = regions.0.read(8, 4).expect("in range");
        assert_eq!(host(&request.inputs[0].data), host(&memory));
        assert_eq!(host(&request.inputs[0].data).as_ptr(), host(&memory).as_ptr());
    }
}

#[test]
fn a_span_outside_its_region_is_refused_by_the_region() {
    let regions = OneRegion::new();
    let beyond = IN_REGION.replace("\"shared_memory_offset\":8", "\"shared_memory_offset\":61");
    for decoded in [
        over_http(&beyond, "", &regions),
        over_grpc(&region(61, 4), &[], &regions),
        over_grpc(&region(-1, 4), &[], &regions),
        over_grpc(&region(0, -1), &[], &regions),
    ] {
        let error = decoded.expect_err("out of range");
        assert!(error.message().starts_with("Invalid offset + byte size"), "{error}");
    }
}

#[test]
fn answers_go_to_their_region_and_leave_the_message() {
    let regions = OneRegion::new();
    let (_, plan) = over_http(IN_BODY, IN_REGION, &regions).expect("the region is there");
    assert!(matches!(plan.form_of("OUT"), AnswerForm::Region(span) if span.byte_size == 4));
    let encoded = http::encode(response(3), &plan, |_, _| None).expect("fits");
    let json = String::from_utf8(encoded.json).expect("UTF-8");
    assert!(json.ends_with(r#""outputs":[{"name":"OUT","datatype":"UINT8","shape":[3]}]}"#));
    assert!(encoded.binary.is_empty());

    let (_, plan) = over_grpc(&[], &region(16, 4), &regions).expect("the region is there");
    let message = grpc::encode(response(4), &plan, |_, _| None).expect("fits");
    assert_eq!(message.outputs[0].shape, [4]);
    assert_eq!(message.raw_output_contents, [Bytes::new()]);
    assert_eq!(regions.written(), [(8, vec![9; 3]), (16, vec![9; 4])]);
}

#[test]
fn an_answer_larger_than_its_span_is_refused() {
    let regions = OneRegion::new();
    let (_, plan) = over_http(IN_BODY, IN_REGION, &regions).expect("the region is there");
    let error = http::encode(response(5), &plan, |_, _| None).expect_err("too large");
    assert_eq!(
        error.message(),
        "shared memory size specified with the request for output 'OUT' (4 bytes) should be at least 5 bytes to \
         hold the results"
    );
    assert!(regions.written().is_empty());
}

#[test]
fn without_regions_none_is_found() {
    let unreadable = r#""shared_memory_region":"r","shared_memory_byte_size":"x""#;
    for decoded in [
        over_http(IN_REGION, "", &NoRegions),
        over_http(IN_BODY, IN_REGION, &NoRegions),
        over_http(unreadable, "", &NoRegions),
        over_grpc(&region(8, 4), &[], &NoRegions),
        over_grpc(&[], &region(8, 4), &NoRegions),
    ] {
        let error = decoded.expect_err("no region");
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.message(), "Unable to find shared memory region: 'r'");
    }
}

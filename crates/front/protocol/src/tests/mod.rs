//! Both protocols with a region of a real file, and without any.

mod models;

use std::fs;

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_engine::{RegionDescription, RegionTable};
use galatea_proto::inference::{
    InferParameter, ModelInferRequest,
    infer_parameter::ParameterChoice::{self, Int64Param, StringParam},
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_types::{
    Buffer, Code, DataType, InferRequest, InferResponse, MemoryBudget, Regions, Result, Tensor,
};
use prost::Message as _;

use crate::{AnswerForm, AnswerPlan, grpc, http};

/// One region, `r`, of 64 bytes that hold their offsets.
struct OneRegion {
    folder: tempfile::TempDir,
    table: RegionTable,
}

impl OneRegion {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("k"), first_content()).expect("written");
        let table = RegionTable::new(folder.path(), MemoryBudget::unlimited());
        let [name, key] = ["r", "/k"].map(str::to_owned);
        let region = RegionDescription { name, key, offset: 0, byte_size: 64 };
        table.register(region).expect("it is there");
        Self { folder, table }
    }

    /// Whether the region holds these bytes at these offsets, and is else as it was.
    #[track_caller]
    fn assert_written(&self, written: &[(usize, &[u8])]) {
        let mut expected = first_content();
        for (offset, bytes) in written {
            expected[*offset..][..bytes.len()].copy_from_slice(bytes);
        }
        assert_eq!(fs::read(self.folder.path().join("k")).expect("it is there"), expected);
    }
}

fn first_content() -> Vec<u8> {
    (0..64).collect()
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
fn inputs_are_read_from_their_region() {
    let regions = OneRegion::new().table;
    for decoded in [over_http(IN_REGION, "", &regions), over_grpc(&region(8, 4), &[], &regions)] {
        let (request, _) = decoded.expect("the region is there");
        assert_eq!(host(&request.inputs[0].data), [8, 9, 10, 11]);
    }
}

#[test]
fn a_span_outside_its_region_is_refused_before_execution() {
    let regions = OneRegion::new().table;
    let beyond = IN_REGION.replace("\"shared_memory_offset\":8", "\"shared_memory_offset\":61");
    for decoded in [
        over_http(&beyond, "", &regions),
        over_http(IN_BODY, &beyond, &regions),
        over_grpc(&region(61, 4), &[], &regions),
        over_grpc(&[], &region(61, 4), &regions),
        over_grpc(&region(0, -1), &[], &regions),
    ] {
        let error = decoded.expect_err("out of range");
        assert_eq!(error.code(), Code::InvalidArg);
        assert_eq!(error.message(), "Invalid offset + byte size for shared memory region: 'r'");
    }
    let error = over_grpc(&region(-1, 4), &[], &regions).expect_err("out of range");
    assert_eq!(error.message(), "Invalid offset for shared memory region: 'r'");
}

#[test]
fn outputs_are_written_to_their_region_and_omitted_from_the_message() {
    let regions = OneRegion::new();
    let decoded = over_http(IN_BODY, IN_REGION, &regions.table);
    let (_, plan) = decoded.expect("the region is there");
    assert!(matches!(plan.form_of("OUT"), AnswerForm::Region(_)));
    let encoded = http::encode(response(3), &plan, |_, _| None).expect("fits");
    let json = String::from_utf8(encoded.json).expect("UTF-8");
    assert!(json.ends_with(r#""outputs":[{"name":"OUT","datatype":"UINT8","shape":[3]}]}"#));
    assert!(encoded.binary.is_empty());

    let decoded = over_grpc(&[], &region(16, 4), &regions.table);
    let (_, plan) = decoded.expect("the region is there");
    let message = grpc::encode(response(4), &plan, |_, _| None).expect("fits");
    assert_eq!(message.outputs[0].shape, [4]);
    assert_eq!(message.raw_output_contents, [Bytes::new()]);
    regions.assert_written(&[(8, &[9; 3]), (16, &[9; 4])]);
}

#[test]
fn an_output_larger_than_its_span_is_refused() {
    let regions = OneRegion::new();
    let decoded = over_http(IN_BODY, IN_REGION, &regions.table);
    let (_, plan) = decoded.expect("the region is there");
    let error = http::encode(response(5), &plan, |_, _| None).expect_err("too large");
    assert_eq!(
        error.message(),
        "shared memory size specified with the request for output 'OUT' (4 bytes) should be at least 5 bytes to \
         hold the results"
    );
    regions.assert_written(&[]);
}

#[test]
fn an_unknown_region_is_refused() {
    let none = RegionTable::default();
    let unreadable = r#""shared_memory_region":"r","shared_memory_byte_size":"x""#;
    for decoded in [
        over_http(IN_REGION, "", &none),
        over_http(IN_BODY, IN_REGION, &none),
        over_http(unreadable, "", &none),
        over_grpc(&region(8, 4), &[], &none),
        over_grpc(&[], &region(8, 4), &none),
    ] {
        let error = decoded.expect_err("no region");
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.message(), "Unable to find shared memory region: 'r'");
    }
}

//! Requests as bytes, against the messages prost reads from them.

use galatea_types::DataType;

use super::*;
use crate::{Endpoint, InputTensor, OutputTensor, Protocol, TensorFormat};

fn target(compression: Compression) -> Target {
    Target {
        protocol: Protocol::Grpc,
        endpoint: Endpoint::Tcp { host: "localhost".into(), port: 1 },
        base_path: String::new(),
        headers: Vec::new(),
        tls: None,
        compression,
    }
}

fn template(data: Bytes) -> InferTemplate {
    let region = RegionSlice { region: "r".into(), offset: 8, byte_size: 64 };
    let input = |name: &str, data| InputTensor {
        name: name.into(),
        data_type: DataType::Uint8,
        shape: vec![1, -1],
        data,
    };
    InferTemplate {
        model: "m".into(),
        version: "2".into(),
        inputs: vec![input("A", InputData::Inline(data)), input("B", InputData::Region(region))],
        outputs: vec![RequestedOutput { name: "C".into(), region: None, classes: 0 }],
        parameters: vec![
            ("text".into(), ParameterValue::String("x".into())),
            ("half".into(), ParameterValue::Double(0.5)),
        ],
        input_format: TensorFormat::Binary,
        output_format: TensorFormat::Binary,
    }
}

/// Puts the message together as the connection does, and decodes it.
fn decoded(request: &GrpcInfer, mark: InferMark) -> ModelInferRequest {
    let mut bytes = request.front(mark).unwrap().to_vec();
    request.tail().for_each(|part| bytes.extend_from_slice(part));
    let (prefix, message) = bytes.split_first_chunk::<PREFIX>().unwrap();
    assert_eq!(u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize, message.len());
    let message = match request.compression.encoding() {
        None => Bytes::copy_from_slice(message),
        Some(encoding) => {
            crate::grpc::compression::decompress(encoding, message, usize::MAX).unwrap().unwrap()
        }
    };
    assert_eq!(prefix[0], u8::from(request.compression != Compression::None));
    ModelInferRequest::decode(message).unwrap()
}

fn choice(message: &ModelInferRequest, name: &str) -> Option<ParameterChoice> {
    message.parameters.get(name)?.parameter_choice.clone()
}

#[test]
fn small_and_large_requests_carry_the_same_fields() {
    for compression in [Compression::None, Compression::Gzip, Compression::Deflate] {
        for size in [0, 4, JOIN_LIMIT, JOIN_LIMIT + 1, 1 << 20] {
            let data = Bytes::from(vec![7; size]);
            let request =
                GrpcInfer::new(&target(compression), &template(data.clone()), None).unwrap();
            let plain = decoded(&request, InferMark::default());
            assert_eq!(plain.raw_input_contents, [data]);
            assert_eq!((plain.model_name.as_str(), plain.model_version.as_str()), ("m", "2"));
            assert_eq!(plain.inputs[1].parameters.len(), 3);
            assert_eq!(choice(&plain, "half"), Some(ParameterChoice::DoubleParam(0.5)));

            let sequence = Some(SequenceMark { id: u64::MAX, start: true, end: false });
            let mut marked = decoded(&request, InferMark { id: Some(12), sequence });
            assert_eq!(marked.id, "12");
            assert_eq!(choice(&marked, "sequence_id"), Some(ParameterChoice::Int64Param(-1)));
            let flag = |name| choice(&marked, name);
            assert_eq!(flag("sequence_start"), Some(ParameterChoice::BoolParam(true)));
            assert_eq!(flag("sequence_end"), Some(ParameterChoice::BoolParam(false)));
            marked.parameters.retain(|name, _| !name.starts_with("sequence"));
            marked.id.clear();
            assert_eq!(marked, plain);
        }
    }
}

#[test]
fn large_data_is_not_copied() {
    let data = Bytes::from(vec![7; JOIN_LIMIT + 1]);
    let request =
        GrpcInfer::new(&target(Compression::None), &template(data.clone()), None).unwrap();
    assert!(request.tail().any(|part| part.as_ptr() == data.as_ptr()));
}

#[test]
fn outputs_decode_from_raw_and_typed_contents() {
    use galatea_proto::inference::{
        InferTensorContents, ModelInferResponse, model_infer_response::InferOutputTensor,
    };
    let output = |name: &str, datatype: &str| InferOutputTensor {
        name: name.into(),
        datatype: datatype.into(),
        shape: vec![1],
        ..Default::default()
    };
    let mut response = ModelInferResponse {
        outputs: vec![output("A", "INT16"), output("B", "BYTES")],
        raw_output_contents: vec![Bytes::from_static(b"ab"), Bytes::from_static(b"\0\0\0\0")],
        ..Default::default()
    };
    let found = crate::grpc::outputs::decode(response.encode_to_vec().into()).unwrap();
    let data = |found: &[OutputTensor]| found.iter().map(|o| o.data.to_vec()).collect::<Vec<_>>();
    assert_eq!(data(&found), [b"ab".to_vec(), vec![0; 4]]);

    response.raw_output_contents.clear();
    response.outputs[0].contents =
        Some(InferTensorContents { int_contents: vec![-2], ..Default::default() });
    response.outputs[1].contents = Some(InferTensorContents {
        bytes_contents: vec![Bytes::from_static(b"hi")],
        ..Default::default()
    });
    let found = crate::grpc::outputs::decode(response.encode_to_vec().into()).unwrap();
    assert_eq!(data(&found), [vec![0xfe, 0xff], b"\x02\0\0\0hi".to_vec()]);

    response.outputs[0].datatype = "FP8".into();
    let error = crate::grpc::outputs::decode(response.encode_to_vec().into()).unwrap_err();
    assert!(error.message().contains("'FP8'"), "{error}");
}

#[test]
fn classification_is_requested_by_an_output_parameter() {
    let mut template = template(Bytes::from_static(b"abcd"));
    template.outputs[0].classes = 3;
    let request = GrpcInfer::new(&target(Compression::None), &template, None).unwrap();
    let message = decoded(&request, InferMark::default());
    let asked = message.outputs[0].parameters["classification"].parameter_choice.clone();
    assert_eq!(asked, Some(ParameterChoice::Int64Param(3)));
}

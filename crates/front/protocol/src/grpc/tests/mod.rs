//! Messages in, messages out. Codes and texts are those of Triton.

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_engine::RegionTable;
use galatea_proto::inference::{
    InferParameter, InferTensorContents, ModelInferRequest,
    infer_parameter::ParameterChoice,
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_types::{
    Code, CorrelationId, DataType, InferRequest, InferResponse, ParameterValue, Result, Tensor,
};
use prost::Message as _;

mod wire;

use super::{Pieces, RequestMessage, encode};
use crate::{AnswerForm, AnswerPlan};

/// The message over the wire, into a request.
fn decode(
    message: &ModelInferRequest,
    config: &ModelConfig,
    regions: &RegionTable,
) -> Result<(InferRequest, AnswerPlan)> {
    read(message.encode_to_vec().into(), config, regions)
}

fn read(
    message: Bytes,
    config: &ModelConfig,
    regions: &RegionTable,
) -> Result<(InferRequest, AnswerPlan)> {
    super::decode(RequestMessage::read(Pieces::from(message))?, config, regions)
}

type Change = fn(&mut ModelInferRequest);

fn config() -> ModelConfig {
    testing::model_config(
        "backend: 'identity'
         input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }
         output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }",
    )
}

fn request() -> ModelInferRequest {
    ModelInferRequest {
        model_name: "m".into(),
        inputs: vec![input()],
        raw_input_contents: vec![Bytes::from_static(&[0, 0, 128, 63, 0, 0, 0, 64])],
        ..Default::default()
    }
}

fn input() -> InferInputTensor {
    InferInputTensor {
        name: "INPUT0".into(),
        datatype: "FP32".into(),
        shape: vec![2],
        ..Default::default()
    }
}

fn changed(change: Change) -> ModelInferRequest {
    let mut request = request();
    change(&mut request);
    request
}

fn decoded(change: Change) -> Result<(InferRequest, AnswerPlan)> {
    decode(&changed(change), &config(), &RegionTable::default())
}

fn parameter(choice: ParameterChoice) -> InferParameter {
    InferParameter { parameter_choice: Some(choice) }
}

fn set(request: &mut ModelInferRequest, key: &str, choice: ParameterChoice) {
    request.parameters.insert(key.to_owned(), parameter(choice));
}

fn set_input(request: &mut ModelInferRequest, key: &str, choice: ParameterChoice) {
    request.inputs[0].parameters.insert(key.to_owned(), parameter(choice));
}

fn ask(request: &mut ModelInferRequest, parameters: &[(&str, ParameterChoice)]) {
    request.outputs.push(InferRequestedOutputTensor {
        name: "OUTPUT0".into(),
        parameters: parameters
            .iter()
            .map(|(k, c)| ((*k).to_owned(), parameter(c.clone())))
            .collect(),
    });
}

fn typed(request: &mut ModelInferRequest, data_type: &str, contents: InferTensorContents) {
    request.raw_input_contents.clear();
    request.inputs[0].datatype = data_type.to_owned();
    request.inputs[0].contents = Some(contents);
}

use ParameterChoice::{BoolParam, DoubleParam, Int64Param, StringParam, Uint64Param};

fn text(s: &str) -> ParameterChoice {
    StringParam(s.to_owned())
}

#[test]
fn raw_contents_are_not_copied() {
    let message = Bytes::from(request().encode_to_vec());
    let request = read(message.clone(), &config(), &RegionTable::default()).expect("good").0;
    let data = request.inputs[0].host().expect("host memory");
    assert!(message.as_ptr_range().contains(&data.as_ptr()));
    assert_eq!((&*request.model_name, request.model_version), ("m", None));
    assert_eq!(
        (request.inputs[0].data_type, &request.inputs[0].shape[..]),
        (DataType::Fp32, &[2][..])
    );
}

#[test]
fn every_request_field_is_decoded() {
    let (request, plan) = decoded(|r| {
        r.id = "a7".into();
        r.model_version = "3".into();
        set(r, "sequence_id", Int64Param(-5));
        set(r, "sequence_start", BoolParam(true));
        set(r, "sequence_end", BoolParam(true));
        set(r, "priority", Uint64Param(7));
        set(r, "timeout", Int64Param(1500));
        set(r, "triton_enable_empty_final_response", BoolParam(true));
        set(r, "custom", DoubleParam(1.5));
        set(r, "binary_data_output", BoolParam(true));
        ask(r, &[("classification", Int64Param(1 << 40)), ("other", text("x"))]);
    })
    .expect("good");
    assert!(plan.wants_empty_final() && request.sequence_start && request.sequence_end);
    assert_eq!((request.id.as_str(), request.model_version, request.priority), ("a7", Some(3), 7));
    assert_eq!(request.timeout.map(|t| t.as_micros()), Some(1500));
    assert_eq!(request.correlation_id, CorrelationId::Number(-5_i64 as u64));
    let form = plan.form_of(&request.outputs[0]);
    assert!(matches!(form, AnswerForm::Classes { count, .. } if count.get() == u32::MAX));
    let expected = [
        ("binary_data_output", ParameterValue::Bool(true)),
        ("custom", ParameterValue::Double(1.5)),
    ];
    assert_eq!(request.parameters, expected.map(|(k, v)| (k.to_owned(), v)));
}

#[test]
fn neutral_parameter_values_are_ignored() {
    let request = decoded(|r| {
        set(r, "sequence_id", text(""));
        set(r, "timeout", Int64Param(-1));
        set(r, "priority", Int64Param(0));
        // More raw contents than inputs: ignored, as in Triton.
        r.raw_input_contents.push(Bytes::new());
        ask(r, &[]);
    })
    .expect("good")
    .0;
    assert_eq!((request.correlation_id, request.timeout), (CorrelationId::None, None));
}

#[track_caller]
fn check_typed(data_type: &str, contents: InferTensorContents, expected: &[u8]) {
    let mut message = request();
    typed(&mut message, data_type, contents);
    let request = decode(&message, &config(), &RegionTable::default()).expect("good").0;
    assert_eq!(request.inputs[0].data_type.protocol_name(), data_type);
    assert_eq!(request.inputs[0].host().expect("host memory"), expected);
    assert!(expected.is_empty() || request.inputs[0].data.is_aligned_to(64));
}

#[test]
fn typed_contents_of_every_kind_are_decoded() {
    let none = InferTensorContents::default;
    check_typed(
        "BOOL",
        InferTensorContents { bool_contents: vec![true, false], ..none() },
        &[1, 0],
    );
    let ints = InferTensorContents { int_contents: vec![-2, 300], ..none() };
    check_typed("INT8", ints.clone(), &[0xfe, 44]);
    check_typed("INT16", ints.clone(), &[0xfe, 0xff, 44, 1]);
    check_typed("INT32", ints, &[0xfe, 0xff, 0xff, 0xff, 44, 1, 0, 0]);
    check_typed("INT64", InferTensorContents { int64_contents: vec![-1], ..none() }, &[0xff; 8]);
    let uints = InferTensorContents { uint_contents: vec![300, 2], ..none() };
    check_typed("UINT8", uints.clone(), &[44, 2]);
    check_typed("UINT16", uints.clone(), &[44, 1, 2, 0]);
    check_typed("UINT32", uints, &[44, 1, 0, 0, 2, 0, 0, 0]);
    let uint64s = InferTensorContents { uint64_contents: vec![u64::MAX], ..none() };
    check_typed("UINT64", uint64s, &[0xff; 8]);
    let fp32s = InferTensorContents { fp32_contents: vec![1.0], ..none() };
    check_typed("FP32", fp32s, &1f32.to_le_bytes());
    let fp64s = InferTensorContents { fp64_contents: vec![1.0], ..none() };
    check_typed("FP64", fp64s, &1f64.to_le_bytes());
    let words = vec![Bytes::from_static(b"ab"), Bytes::new()];
    let strings = InferTensorContents { bytes_contents: words, ..none() };
    check_typed("BYTES", strings, b"\x02\0\0\0ab\0\0\0\0");
    check_typed("FP32", none(), &[]);
}

const CUSTOM: &str =
    "invalid value type for 'x' parameter, expected int64_param, bool_param, or string_param.";
const RESERVED: &str = "parameter keys starting with 'triton_' are reserved for Triton usage. Only the \
following keys starting with 'triton_' are allowed: triton_enable_empty_final_response";
const CLASS_TYPE: &str = "invalid value type for 'classification' parameter, expected int64_param";
const CLASS_VALUE: &str = "invalid value for 'classification' parameter, expected >= 0";

fn fp32s() -> InferTensorContents {
    InferTensorContents { fp32_contents: vec![1.0, 2.0], ..Default::default() }
}

/// Request, code and text; all observed on Triton 2.51.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn malformed_requests_are_refused() {
    let invalid = Code::InvalidArg;
    let cases: Vec<(Change, Code, &str)> = vec![
        (
            |r| r.model_version = "x".into(),
            invalid,
            "failed to get model version from specified version string 'x' (details: stol), version should be an integral value > 0",
        ),
        (
            |r| r.model_version = "-1".into(),
            invalid,
            "invalid model version specified '-1' , version should be an integral value > 0",
        ),
        (
            |r| set(r, "sequence_id", BoolParam(true)),
            invalid,
            "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
        ),
        (
            |r| set(r, "sequence_id", Uint64Param(7)),
            invalid,
            "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
        ),
        (
            |r| set(r, "sequence_start", Int64Param(1)),
            invalid,
            "invalid value type for 'sequence_start' parameter, expected bool_param.",
        ),
        (
            |r| set(r, "sequence_end", text("true")),
            invalid,
            "invalid value type for 'sequence_end' parameter, expected bool_param.",
        ),
        (
            |r| set(r, "priority", text("1")),
            invalid,
            "invalid value type for 'priority' parameter, expected int64_param or uint64_param.",
        ),
        (
            |r| set(r, "priority", Int64Param(-5)),
            invalid,
            "invalid value for 'priority', expected value >= 0.",
        ),
        (
            |r| set(r, "timeout", Uint64Param(7)),
            invalid,
            "invalid value type for 'timeout' parameter, expected int64_param.",
        ),
        (
            |r| set(r, "timeout", DoubleParam(0.5)),
            invalid,
            "invalid value type for 'timeout' parameter, expected int64_param.",
        ),
        (|r| set(r, "x", Uint64Param(1)), invalid, CUSTOM),
        (|r| drop(r.parameters.insert("x".into(), InferParameter::default())), invalid, CUSTOM),
        (|r| set(r, "triton_x", BoolParam(true)), invalid, RESERVED),
        (
            |r| set(r, "triton_enable_empty_final_response", Int64Param(1)),
            invalid,
            "invalid value type for 'triton_enable_empty_final_response' parameter, expected bool_param.",
        ),
        (|r| ask(r, &[("classification", BoolParam(true))]), invalid, CLASS_TYPE),
        (|r| ask(r, &[("classification", Uint64Param(2))]), invalid, CLASS_TYPE),
        (|r| ask(r, &[("classification", Int64Param(0))]), invalid, CLASS_VALUE),
        (|r| ask(r, &[("classification", Int64Param(-1))]), invalid, CLASS_VALUE),
        (
            |r| {
                ask(
                    r,
                    &[
                        ("shared_memory_region", text("r")),
                        ("shared_memory_byte_size", Int64Param(8)),
                    ],
                )
            },
            Code::NotFound,
            "Unable to find shared memory region: 'r'",
        ),
        (
            |r| {
                ask(
                    r,
                    &[
                        ("shared_memory_region", text("r")),
                        ("shared_memory_byte_size", Int64Param(8)),
                        ("classification", Int64Param(1)),
                    ],
                )
            },
            invalid,
            "output can't set both 'shared_memory_region' and 'classification'",
        ),
        (
            |r| ask(r, &[("shared_memory_region", Int64Param(3))]),
            invalid,
            "invalid value type for 'shared_memory_region' parameter for tensor 'OUTPUT0', expected string_param.",
        ),
        (
            |r| ask(r, &[("shared_memory_region", text("r"))]),
            invalid,
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'OUTPUT0'",
        ),
        (
            |r| ask(r, &[("shared_memory_offset", Int64Param(4))]),
            invalid,
            "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'OUTPUT0'",
        ),
        (
            |r| set_input(r, "shared_memory_byte_size", Int64Param(4)),
            invalid,
            "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'INPUT0'",
        ),
        (
            |r| {
                set_input(r, "shared_memory_region", text("r"));
                set_input(r, "shared_memory_byte_size", Int64Param(8))
            },
            Code::NotFound,
            "Unable to find shared memory region: 'r'",
        ),
        (
            |r| {
                set_input(r, "shared_memory_region", text("r"));
                set_input(r, "shared_memory_byte_size", text("x"))
            },
            invalid,
            "invalid value type for 'shared_memory_byte_size' parameter for tensor 'INPUT0', expected int64_param.",
        ),
        (
            |r| {
                set_input(r, "shared_memory_region", text("r"));
                set_input(r, "shared_memory_byte_size", Int64Param(8));
                set_input(r, "shared_memory_offset", text("x"))
            },
            invalid,
            "invalid value type for 'shared_memory_offset' parameter for tensor 'INPUT0', expected int64_param.",
        ),
        (
            |r| {
                typed(r, "FP32", fp32s());
                set_input(r, "shared_memory_region", text("r"));
                set_input(r, "shared_memory_byte_size", Int64Param(8))
            },
            invalid,
            "unexpected 'content' provided when using shared memory for input tensor 'INPUT0' for model 'm'",
        ),
        (
            |r| r.raw_input_contents.clear(),
            invalid,
            "unable to find data for input tensor 'INPUT0' for model 'm' in request.",
        ),
        (
            |r| r.inputs[0].contents = Some(fp32s()),
            invalid,
            "contents field must not be specified when using raw_input_contents for 'INPUT0' for model 'm'",
        ),
        (
            |r| typed(r, "BF16", fp32s()),
            invalid,
            "unexpected explicit tensor data for input tensor 'INPUT0' for model 'm' of type 'FP32', expected datatype 'BF16' (input 'INPUT0': the model takes FP32 of shape [-1], where -1 stands for the size that your data has)",
        ),
        (
            |r| typed(r, "XX", fp32s()),
            invalid,
            "unexpected explicit tensor data for input tensor 'INPUT0' for model 'm' of type 'FP32', expected datatype '<invalid>' (input 'INPUT0': the model takes FP32 of shape [-1], where -1 stands for the size that your data has)",
        ),
        (
            |r| {
                typed(
                    r,
                    "FP32",
                    InferTensorContents { int_contents: vec![1], ..Default::default() },
                )
            },
            invalid,
            "unexpected explicit tensor data for input tensor 'INPUT0' for model 'm' of type 'INT32', expected datatype 'FP32' (input 'INPUT0': the model takes FP32 of shape [-1], where -1 stands for the size that your data has)",
        ),
        (
            |r| typed(r, "INT8", InferTensorContents { int_contents: vec![1], ..fp32s() }),
            invalid,
            "unexpected explicit tensor data for input tensor 'INPUT0' for model 'm', binary data was already supplied.",
        ),
        (
            |r| r.inputs[0].datatype = "fp32".into(),
            invalid,
            "[request id: <id_unknown>] inference input 'INPUT0' data-type is '<invalid>', but model 'm' expects 'FP32'",
        ),
        (
            |r| {
                r.inputs[0].datatype.clear();
                r.id = "q".into()
            },
            invalid,
            "[request id: q] inference input 'INPUT0' data-type is '<invalid>', but model 'm' expects 'FP32'",
        ),
        (
            |r| {
                r.inputs[0].datatype.clear();
                r.inputs[0].name = "Z".into()
            },
            invalid,
            "unexpected inference input 'Z' for model 'm' (its inputs: 'INPUT0')",
        ),
        (
            |r| r.inputs.push(input()),
            invalid,
            "[request id: <id_unknown>] input 'INPUT0' already exists in request",
        ),
        (
            |r| {
                ask(r, &[]);
                ask(r, &[]);
            },
            invalid,
            "[request id: <id_unknown>] output 'OUTPUT0' already exists in request",
        ),
        (
            |r| set(r, "sequence_id", text(&"s".repeat(129))),
            Code::Unsupported,
            "string correlation ID cannot be longer than 128 characters",
        ),
        (
            |r| {
                r.inputs[0].name = "A".into();
                r.inputs.extend([input(), input()])
            },
            invalid,
            "[request id: <id_unknown>] input 'INPUT0' already exists in request",
        ),
    ];
    for (change, code, message) in cases {
        let error = decoded(change).expect_err(message);
        assert_eq!((error.code(), error.message()), (code, message));
    }
}

#[test]
fn every_response_field_is_encoded() {
    let tensor = Tensor::new("OUTPUT0", DataType::Int64, [1, 2], vec![7; 16]);
    let response = InferResponse {
        model_name: "m".into(),
        model_version: 3,
        id: "a7".into(),
        parameters: vec![
            ("n".into(), ParameterValue::Uint(5)),
            ("b".into(), ParameterValue::Bool(true)),
        ],
        outputs: vec![tensor],
    };
    let plan = AnswerPlan::new(AnswerForm::Binary, false);
    let message = encode(response, &plan, |_, _| None).expect("encodes");
    assert_eq!(message.raw_output_contents, [vec![7; 16]]);
    assert_eq!((message.model_version.as_str(), message.id.as_str()), ("3", "a7"));
    let output = &message.outputs[0];
    assert_eq!(
        (output.name.as_str(), output.datatype.as_str(), &output.shape[..]),
        ("OUTPUT0", "INT64", &[1, 2][..])
    );
    assert!(output.contents.is_none());
    assert_eq!(message.parameters["n"].parameter_choice, Some(Uint64Param(5)));
}

//! The generate extension.

use galatea_types::{
    Code, CorrelationId, DataType, InferRequest, InferResponse, ParameterValue, Result, Shape,
    Tensor,
};

use super::{model, spec};
use crate::http::{decode_generate, encode_generate, server_sent_event};

fn decode_for(data_type: DataType, dims: &[i64], batch: u32, json: &str) -> Result<InferRequest> {
    decode_generate(json.as_bytes(), &model(batch, vec![spec("IN", data_type, dims)]), None)
}

fn decode_ints(json: &str) -> Result<InferRequest> {
    decode_for(DataType::Int32, &[-1], 0, json)
}

#[track_caller]
fn refused(result: Result<InferRequest>, code: Code, text: &str) {
    let error = result.expect_err("a mistake");
    assert_eq!((error.code(), super::refusals::sentence(error.message())), (code, text));
}

#[test]
fn the_input_with_the_wrong_kind_of_value_is_named() {
    for (data_type, json, advice) in [
        (DataType::Fp32, r#"{"IN":"x"}"#, "its value is a string, FP32 takes numbers"),
        (
            DataType::Int8,
            r#"{"IN":[1,300]}"#,
            "its value[1] is a number that does not fit, INT8 takes whole numbers from -128 to 127",
        ),
        (DataType::Bytes, r#"{"IN":7}"#, "its value is a number, BYTES takes strings"),
    ] {
        let error = decode_for(data_type, &[-1], 0, json).expect_err("refused");
        assert!(error.message().ends_with(&format!(" (input 'IN': {advice})")), "{error}");
    }
}

fn parameters(request: &InferRequest) -> Vec<(&str, &ParameterValue)> {
    request.parameters.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

#[test]
fn keys_become_tensors_parameters_and_the_id() {
    let json = r#"{"id":"me","IN":[1,-2],"temp":0.5,"n":3,"text":"caf\u00e9","ok":true,"big":18446744073709551615}"#;
    let request = decode_ints(json).expect("a request");
    assert_eq!(request.id, "me");
    let [input] = &request.inputs[..] else { panic!("{:?}", request.inputs) };
    assert_eq!((&*input.name, &input.shape), ("IN", &Shape::from([2])));
    assert_eq!(input.host().expect("host memory")[..], [1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
    // The id is a parameter too, as in Triton.
    let expected = [
        ("id", &ParameterValue::String("me".into())),
        ("temp", &ParameterValue::Double(0.5)),
        ("n", &ParameterValue::Int(3)),
        ("text", &ParameterValue::String("café".into())),
        ("ok", &ParameterValue::Bool(true)),
        ("big", &ParameterValue::Uint(u64::MAX)),
    ];
    assert_eq!(parameters(&request), expected);
}

#[test]
fn reserved_parameter_names_have_no_effect_in_generate() {
    let json = r#"{"sequence_id":5,"sequence_start":1,"timeout":"x","priority":-3,"triton_x":1}"#;
    let request = decode_ints(json).expect("a request");
    assert_eq!(request.correlation_id, CorrelationId::None);
    assert_eq!((request.timeout, request.priority, request.sequence_start), (None, 0, false));
    assert_eq!(request.parameters.len(), 5);
}

#[test]
fn the_nested_object_is_unpacked() {
    let json = r#"{"parameters":{"IN":[1,2,3],"x":1,"id":5,"id":6},"x":2,"x":3}"#;
    let request = decode_ints(json).expect("a request");
    assert_eq!(request.inputs[0].shape, Shape::from([3]));
    assert!(request.id.is_empty(), "only the outer one is the request's");
    let int = ParameterValue::Int;
    assert_eq!(parameters(&request), [("x", &int(1)), ("id", &int(5)), ("x", &int(2))]);
}

#[test]
fn the_number_of_elements_gives_the_shape() {
    for (dims, batch, data, shape) in [
        (&[-1][..], 0, "[1,2,3]", &[3][..]),
        (&[-1], 0, "7", &[1]),
        (&[-1], 0, "[]", &[0]),
        (&[-1], 0, "[1,[2]]", &[2]),
        (&[-1], 0, "[[1]]", &[1]),
        (&[1], 0, "5", &[1]),
        (&[3], 0, "[1,2,3]", &[3]),
        (&[-1, -1], 0, "[1,2,3]", &[1, 3]),
        (&[2, -1, 3], 0, "[1,2,3,4,5,6]", &[2, 1, 3]),
        (&[2, -1, 3], 0, "[1,2,3,4,5,6,7,8,9,10,11,12]", &[2, 2, 3]),
        (&[2, -1, 3], 0, "[]", &[2, 0, 3]),
        (&[-1], 4, "[1,2,3]", &[1, 3]),
        (&[3], 4, "[1,2,3,4,5,6]", &[2, 3]),
        (&[1], 4, "[1,2,3]", &[3, 1]),
        (&[3], 4, "[]", &[0, 3]),
        (&[-1, -1], 4, "[1,2,3]", &[1, 1, 3]),
    ] {
        let json = format!(r#"{{"IN":{data}}}"#);
        let request = decode_for(DataType::Int32, dims, batch, &json);
        let request = request.unwrap_or_else(|e| panic!("{dims:?} {data}: {e}"));
        assert_eq!(request.inputs[0].shape, Shape::from(shape), "{dims:?} {data}");
    }
}

#[test]
fn counts_that_fit_no_shape_are_refused() {
    let text = "The schema can not convert input 'IN' to tensor with proper shape";
    for (dims, data) in [
        (&[3][..], "1"),
        (&[3], "[1,2,3,4,5,6]"),
        (&[3], "[]"),
        (&[3], r#"["a"]"#),
        (&[1], "[5,6]"),
        (&[2, -1, 3], "[1,2,3]"),
    ] {
        let json = format!(r#"{{"IN":{data}}}"#);
        refused(decode_for(DataType::Int32, dims, 0, &json), Code::InvalidArg, text);
    }
}

#[test]
fn every_data_type_is_decoded() {
    for (data_type, data, bytes) in [
        (DataType::Bool, "true", &[1][..]),
        (DataType::Uint8, "255", &[255]),
        (DataType::Uint16, "258", &[2, 1]),
        (DataType::Uint32, "1", &[1, 0, 0, 0]),
        (DataType::Uint64, "18446744073709551615", &[255; 8]),
        (DataType::Int8, "-1", &[255]),
        (DataType::Int16, "-2", &[254, 255]),
        (DataType::Int64, "-1", &[255; 8]),
        (DataType::Fp32, "1.5", &1.5f32.to_le_bytes()),
        (DataType::Fp64, "[0.1]", &0.1f64.to_le_bytes()),
        (DataType::Bytes, r#""a\n""#, &[2, 0, 0, 0, b'a', b'\n']),
        (DataType::Bytes, r#"["","b"]"#, &[0, 0, 0, 0, 1, 0, 0, 0, b'b']),
        (DataType::Bytes, "[]", &[]),
    ] {
        let json = format!(r#"{{"IN":{data}}}"#);
        let request = decode_for(data_type, &[-1], 0, &json).expect("a request");
        assert_eq!(
            request.inputs[0].host().expect("host memory")[..],
            *bytes,
            "{data_type} {data}"
        );
    }
}

#[test]
fn data_of_the_wrong_kind_is_refused() {
    const NUMBER: &str = "Unable to parse 'data': attempt to access JSON non-number as double";
    const BYTES: &str =
        "Unable to parse JSON bytes array: attempt to access JSON non-string as string";
    for (data_type, data, text) in [
        (DataType::Fp32, r#""x""#, NUMBER),
        (DataType::Fp32, "null", NUMBER),
        (DataType::Fp32, "true", NUMBER),
        (DataType::Fp32, r#"{"a":1}"#, NUMBER),
        (
            DataType::Fp32,
            "[[1,2],[3,4]]",
            "Unable to parse 'data': Shape does not match true shape of 'data' field",
        ),
        (
            DataType::Fp32,
            "[[],[]]",
            "Unable to parse 'data': Shape does not match true shape of 'data' field",
        ),
        (
            DataType::Int8,
            "1.5",
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            DataType::Uint8,
            "[-1]",
            "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            DataType::Bool,
            "1",
            "Unable to parse 'data': attempt to access JSON non-boolean as boolean",
        ),
        (DataType::Bytes, "1", BYTES),
        (DataType::Bytes, r#"["a",1]"#, BYTES),
        (DataType::Bytes, "{}", BYTES),
    ] {
        let json = format!(r#"{{"IN":{data}}}"#);
        refused(decode_for(data_type, &[-1], 0, &json), Code::Internal, text);
    }
    refused(
        decode_for(DataType::Fp16, &[-1], 0, r#"{"IN":[0.1]}"#),
        Code::InvalidArg,
        "receiving FP16 data via JSON is not supported. Please use the binary data format for input IN",
    );
}

#[test]
fn invalid_parameters_and_ids_are_refused() {
    const PARAMETER: &str = "has invalid type. It should be either 'int', 'bool', or 'string'.";
    const ID: &str = "Unable to parse 'id': attempt to access JSON non-string as string";
    const OBJECT: &str = "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object";
    const MEMBERS: &str = "attempt to get members for non-object";
    let (internal, invalid) = (Code::Internal, Code::InvalidArg);
    for (json, code, text) in [
        (r#"{"x":null}"#, invalid, format!("parameter 'x' {PARAMETER}")),
        (r#"{"x":[1]}"#, invalid, format!("parameter 'x' {PARAMETER}")),
        (r#"{"x":{}}"#, invalid, format!("parameter 'x' {PARAMETER}")),
        (r#"{"parameters":1}"#, internal, OBJECT.into()),
        (r#"{"parameters":null}"#, internal, OBJECT.into()),
        (
            r#"{"parameters":{"parameters":{"x":1}}}"#,
            invalid,
            format!("Converting keyword: 'parameters': parameter 'parameters' {PARAMETER}"),
        ),
        (r#"{"id":7}"#, internal, ID.into()),
        (r#"{"IN":"x","id":null}"#, internal, ID.into()),
        (
            r#"{"IN":[1],"IN":"x"}"#,
            invalid,
            "[request id: <id_unknown>] input 'IN' already exists in request".into(),
        ),
        (
            r#"{"id":"a","IN":1,"parameters":{"IN":1}}"#,
            invalid,
            "Converting keyword: 'parameters': [request id: a] input 'IN' already exists in request"
                .into(),
        ),
        ("[1]", internal, MEMBERS.into()),
        ("1", internal, MEMBERS.into()),
        ("null", internal, MEMBERS.into()),
    ] {
        refused(decode_ints(json), code, &text);
    }
    let model = model(0, vec![spec("parameters", DataType::Int32, &[-1])]);
    refused(
        decode_generate(br#"{"parameters":[1]}"#, &model, None),
        invalid,
        "Keyword 'parameters' for nested schema also given as input tensor name",
    );
}

#[test]
fn syntax_errors_come_first() {
    for (json, text) in [
        ("", "The document is empty. at 0"),
        ("{", "Missing a name for object member. at 1"),
        (r#"{"id":5,"IN":[1,]}"#, "Invalid value. at 16"),
        (r#"{"IN":[1]}x"#, "The document root must not be followed by other values. at 10"),
        ("[1", "Missing a comma or ']' after an array element. at 2"),
        (r#"{"x":1e400}"#, "Number too big to be stored in double. at 5"),
    ] {
        let text = format!("failed to parse the request JSON buffer: {text}");
        refused(decode_ints(json), Code::Internal, &text);
    }
    decode_ints("{\"IN\":[1]} \0").expect("a zero byte ends the text");
}

fn response(outputs: Vec<Tensor>) -> InferResponse {
    InferResponse {
        model_name: "m".into(),
        model_version: 3,
        id: String::new(),
        parameters: Vec::new(),
        outputs,
    }
}

fn output(name: &str, data_type: DataType, count: i64, data: &[u8]) -> Tensor {
    Tensor::new(name, data_type, Shape::from([count]), data.to_vec())
}

fn written(response: &InferResponse) -> String {
    String::from_utf8(encode_generate(response).expect("has a JSON form")).expect("text")
}

#[test]
fn responses_are_flat_and_sorted() {
    let mut response = response(vec![
        output("z", DataType::Uint8, 2, &[1, 2]),
        output("b", DataType::Bytes, 1, b"\x03\0\0\0a\"\n"),
        output("OUT", DataType::Bool, 1, &[1]),
    ]);
    response.id = "q".into();
    response.parameters =
        vec![("flag".into(), ParameterValue::Bool(true)), ("A".into(), ParameterValue::Int(-1))];
    let expected = r#"{"A":-1,"OUT":true,"b":"a\"\n","flag":true,"id":"q","model_name":"m","model_version":"3","z":[1,2]}"#;
    assert_eq!(written(&response), expected);
}

#[test]
fn colliding_names_are_written_once() {
    let mut response = response(vec![
        output("model_name", DataType::Uint8, 1, &[1]),
        output("p", DataType::Uint8, 1, &[2]),
    ]);
    response.parameters = vec![
        ("model_version".into(), ParameterValue::Int(9)),
        ("p".into(), ParameterValue::Int(5)),
    ];
    assert_eq!(written(&response), r#"{"model_name":"m","model_version":"3","p":5}"#);
}

#[test]
fn outputs_with_zero_one_or_many_elements_are_written() {
    let numbers: Vec<u8> = [1.0f32, 0.1, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
    for (output, expected) in [
        (output("O", DataType::Int32, 0, &[]), "[]"),
        (output("O", DataType::Int32, 1, &[7, 0, 0, 0]), "7"),
        (output("O", DataType::Bytes, 0, &[]), "[]"),
        (output("O", DataType::Bytes, 1, &[0; 4]), r#""""#),
        (output("O", DataType::Bytes, 2, &[0; 8]), r#"["",""]"#),
        (output("O", DataType::Fp32, 3, &numbers), "[1.0,0.10000000149011612,NaN]"),
        (output("O", DataType::Fp64, 1, &0.1f64.to_le_bytes()), "0.1"),
    ] {
        let expected = format!(r#"{{"O":{expected},"model_name":"m","model_version":"3"}}"#);
        assert_eq!(written(&response(vec![output])), expected);
    }
    let error = encode_generate(&response(vec![output("O", DataType::Fp16, 1, &[0, 0])]));
    assert_eq!(error.expect_err("no JSON form").code(), Code::InvalidArg);
}

#[test]
fn events_are_framed() {
    assert_eq!(server_sent_event(b"{}"), b"data: {}\n\n");
}

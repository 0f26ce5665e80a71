//! Responses in JSON and binary form.

use galatea_types::{Code, DataType, InferResponse, ParameterValue, Tensor};

use super::decode_json;
use crate::{
    AnswerForm, AnswerPlan,
    http::{EncodedResponse, encode},
};

fn response(outputs: Vec<Tensor>) -> InferResponse {
    InferResponse {
        model_name: "m".into(),
        model_version: 3,
        id: String::new(),
        parameters: Vec::new(),
        outputs,
    }
}

fn json_plan() -> AnswerPlan {
    AnswerPlan::new(AnswerForm::Inline, false)
}

#[track_caller]
fn check_data(tensor: Tensor, expected: &str) {
    let encoded = encode(response(vec![tensor]), &json_plan(), |_, _| None).expect("encodes");
    let json = String::from_utf8(encoded.json).expect("UTF-8");
    let data = json.split_once("\"data\":").expect("has data").1;
    assert_eq!(data, format!("{expected}}}]}}"));
    assert!(encoded.binary.is_empty());
}

fn tensor<const N: usize>(data_type: DataType, values: &[[u8; N]]) -> Tensor {
    Tensor::new("O", data_type, [values.len() as i64], values.concat())
}

#[test]
fn the_response_keeps_tritons_field_order() {
    let mut answer = response(vec![
        tensor(DataType::Int32, &[1i32.to_le_bytes(), (-2i32).to_le_bytes()]),
        Tensor::new("P", DataType::Bytes, [1, 1], b"\x03\0\0\0a\"b".to_vec()),
    ]);
    answer.id = "r".to_owned();
    answer.parameters = vec![
        ("b".to_owned(), ParameterValue::Bool(true)),
        ("i".to_owned(), ParameterValue::Int(-1)),
        ("d".to_owned(), ParameterValue::Double(2.0)),
        ("s".to_owned(), ParameterValue::String("x\n".to_owned())),
    ];
    let encoded = encode(answer, &json_plan(), |_, _| None).expect("encodes");
    assert_eq!(
        String::from_utf8(encoded.json).expect("UTF-8"),
        r#"{"id":"r","model_name":"m","model_version":"3","parameters":{"b":true,"i":-1,"d":2.0,"s":"x\n"},"outputs":[{"name":"O","datatype":"INT32","shape":[2],"data":[1,-2]},{"name":"P","datatype":"BYTES","shape":[1,1],"data":["a\"b"]}]}"#
    );
}

#[test]
fn data_of_every_type_is_encoded() {
    check_data(tensor(DataType::Bool, &[[1], [0], [7]]), "[true,false,true]");
    check_data(tensor(DataType::Uint8, &[[0], [255]]), "[0,255]");
    check_data(tensor(DataType::Int8, &[[0x80]]), "[-128]");
    check_data(tensor(DataType::Uint16, &[65535u16.to_le_bytes()]), "[65535]");
    check_data(tensor(DataType::Int16, &[(-5i16).to_le_bytes()]), "[-5]");
    check_data(tensor(DataType::Uint32, &[u32::MAX.to_le_bytes()]), "[4294967295]");
    check_data(tensor(DataType::Uint64, &[u64::MAX.to_le_bytes()]), "[18446744073709551615]");
    check_data(tensor(DataType::Int64, &[i64::MIN.to_le_bytes()]), "[-9223372036854775808]");
    let floats = [1.0f32, 2.5, 0.1, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    check_data(
        tensor(DataType::Fp32, &floats.map(f32::to_le_bytes)),
        "[1.0,2.5,0.1,-0.0,NaN,Infinity,-Infinity]",
    );
    check_data(tensor(DataType::Fp64, &[0.1f64.to_le_bytes()]), "[0.1]");
    let strings = b"\x06\0\0\0\"\\\n\x01\xc3\xa9\0\0\0\0";
    check_data(
        Tensor::new("O", DataType::Bytes, [2], strings.to_vec()),
        "[\"\\\"\\\\\\n\\u0001é\",\"\"]",
    );
    check_data(tensor::<4>(DataType::Fp32, &[]), "[]");
}

#[test]
fn written_floats_are_read_back_unchanged() {
    for bits in (0..u32::MAX).step_by(9_999_991) {
        let value = f32::from_bits(bits);
        if !value.is_finite() {
            continue;
        }
        let tensor = tensor(DataType::Fp32, &[value.to_le_bytes()]);
        let encoded = encode(response(vec![tensor]), &json_plan(), |_, _| None).expect("encodes");
        let json = String::from_utf8(encoded.json).expect("UTF-8");
        let data = json.rsplit_once('[').expect("data").1.split_once(']').expect("data").0;
        let back = super::data_of("FP32", "[1]", &format!("[{data}]")).expect("decodes");
        assert_eq!(back.host().expect("host memory"), value.to_le_bytes(), "{data}");
    }
}

#[test]
fn half_precision_needs_the_binary_form() {
    let half = tensor(DataType::Fp16, &[[0, 0x3c]]);
    let error =
        encode(response(vec![half.clone()]), &json_plan(), |_, _| None).expect_err("refused");
    assert_eq!(error.code(), Code::InvalidArg);
    assert!(error.message().starts_with(
        "sending FP16 data via JSON is not supported. Please use the binary data format for output"
    ));
    let mut plan = json_plan();
    plan.default_form = AnswerForm::Binary;
    assert_eq!(
        encode(response(vec![half]), &plan, |_, _| None).expect("binary").binary[0].len(),
        2
    );
}

#[test]
fn binary_outputs_share_the_tensors_memory() {
    let (_, plan) = decode_json(
        r#"{"inputs":[],"outputs":[{"name":"A","parameters":{"binary_data":true}},{"name":"B"},
            {"name":"C","parameters":{"binary_data":true}}]}"#,
    )
    .expect("valid");
    let named = |name: &str, data: &[u8]| {
        Tensor::new(name, DataType::Uint8, [data.len() as i64], data.to_vec())
    };
    let outputs = vec![named("A", &[1, 2]), named("B", &[3]), named("C", &[])];
    let data_at = outputs[0].host().expect("host memory").as_ptr();
    let EncodedResponse { json, binary } =
        encode(response(outputs), &plan, |_, _| None).expect("encodes");
    let json = String::from_utf8(json).expect("UTF-8");
    assert!(json.ends_with(
        r#"[{"name":"A","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}},{"name":"B","datatype":"UINT8","shape":[1],"data":[3]},{"name":"C","datatype":"UINT8","shape":[0],"parameters":{"binary_data_size":0}}]}"#
    ));
    assert_eq!(binary.len(), 1, "nothing is sent for an empty tensor");
    assert_eq!(binary[0].as_ptr(), data_at);
}

#[test]
fn classification_replaces_the_scores() {
    let (_, plan) =
        decode_json(r#"{"inputs":[],"outputs":[{"name":"O","parameters":{"classification":2}}]}"#)
            .expect("valid");
    let scores = tensor(DataType::Fp32, &[1.0f32, 3.0, 2.0].map(f32::to_le_bytes));
    let label = |output: &str, class| {
        assert_eq!(output, "O");
        (class == 1).then_some("dog")
    };
    let encoded = encode(response(vec![scores]), &plan, label).expect("encodes");
    let json = String::from_utf8(encoded.json).expect("UTF-8");
    assert!(json.ends_with(
        r#"{"name":"O","datatype":"BYTES","shape":[2],"data":["3.000000:1:dog","2.000000:2"]}]}"#
    ));
}

#[test]
fn malformed_strings_are_an_error_and_no_panic() {
    let cut = Tensor::new("O", DataType::Bytes, [1], vec![9, 0, 0, 0, b'a']);
    let error = encode(response(vec![cut]), &json_plan(), |_, _| None).expect_err("cut short");
    assert_eq!(error.code(), Code::Internal);
}

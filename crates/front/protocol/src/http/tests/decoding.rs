//! Inference requests that are taken, and what they become.

use galatea_engine::RegionTable;
use std::time::Duration;

use bytes::Bytes;
use galatea_types::{BUFFER_ALIGNMENT, CorrelationId, DataType, ParameterValue};

use super::{data_of, decode_binary, decode_json, model, spec};
use crate::{AnswerForm, http::decode};

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn numbers_of_every_type_are_decoded() {
    for (data_type, data, expected) in [
        ("BOOL", "[true,false]", vec![1, 0]),
        ("UINT8", "[0,255]", vec![0, 255]),
        ("INT8", "[-128,127]", vec![0x80, 0x7f]),
        ("UINT16", "[1,65535]", vec![1, 0, 255, 255]),
        ("INT16", "[-2,-0]", vec![0xfe, 0xff, 0, 0]),
        ("UINT32", "[1,4294967295]", vec![1, 0, 0, 0, 255, 255, 255, 255]),
        ("INT32", "[-1,7]", vec![255, 255, 255, 255, 7, 0, 0, 0]),
        (
            "UINT64",
            "[18446744073709551615,1]",
            [u64::MAX.to_le_bytes(), 1u64.to_le_bytes()].concat(),
        ),
        (
            "INT64",
            "[-9223372036854775808,9223372036854775807]",
            [i64::MIN.to_le_bytes(), i64::MAX.to_le_bytes()].concat(),
        ),
        ("FP32", "[1,2.5]", f32s(&[1.0, 2.5])),
        ("FP64", "[1e300,-0.0]", [1e300f64.to_le_bytes(), (-0.0f64).to_le_bytes()].concat()),
        ("BYTES", r#"["aé\n","\u00e9\ud83d\ude00"]"#, {
            let mut packed = vec![4, 0, 0, 0];
            packed.extend("aé\n".as_bytes());
            packed.extend([6, 0, 0, 0]);
            packed.extend("é😀".as_bytes());
            packed
        }),
    ] {
        let buffer = data_of(data_type, "[2]", data).expect(data_type);
        assert_eq!(buffer.host().expect("host memory"), expected, "{data_type}");
        assert!(buffer.is_aligned_to(BUFFER_ALIGNMENT), "{data_type}");
    }
}

#[test]
fn numbers_are_rounded_to_the_nearest_double() {
    for text in [
        "0.1",
        "1e-7",
        "123456789",
        "0.30000000000000004",
        "8.41e21",
        "9007199254740993",
        "1e22",
        "1e23",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "4.9e-324",
        "0.000001",
        "123456789012345678901",
        "1.00000000000000011102230246251565404236316680908203125",
        "0e999",
        "3.0",
        "1E+2",
    ] {
        let expected: f64 = text.parse().expect("a number");
        let buffer = data_of("FP64", "[1]", &format!("[{text}]")).expect(text);
        assert_eq!(buffer.host().expect("host memory"), expected.to_le_bytes(), "{text}");
    }
}

#[test]
fn nan_and_infinity_are_accepted_by_name() {
    let buffer = data_of("FP32", "[4]", "[NaN,Infinity,-Infinity,Inf]").expect("Triton's dialect");
    let values: Vec<f32> = buffer
        .host()
        .expect("host memory")
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect();
    assert!(values[0].is_nan());
    assert_eq!(values[1..], [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY]);
}

#[test]
fn nested_and_flat_data_are_equal() {
    let flat = data_of("FP32", "[2,2]", "[1,2,3,4]").expect("flat");
    assert_eq!(data_of("FP32", "[2,2]", "[[1,2],[3,4]]").expect("nested"), flat);
    assert_eq!(data_of("FP32", "[2,2]", " [ [ [1] , 2 ],\n[3,[[4]]]] ").expect("ragged"), flat);
    let deep = format!("{}1,2,3,4{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(data_of("FP32", "[2,2]", &deep).expect("100 deep"), flat);
}

#[test]
fn keys_may_come_in_any_order_and_the_first_duplicate_counts() {
    let (request, plan) = decode_json(
        r#"{"outputs":[{"parameters":{"classification":3},"name":"O"}],"foo":[{"bar":null}],
            "inputs":[{"data":[[1],[2]],"x":{},"datatype":"INT32","shape":[2,1],"name":"I","name":"J"}],
            "id":"r1"}"#,
    )
    .expect("valid");
    assert_eq!(request.id, "r1");
    let [input] = &request.inputs[..] else { panic!("one input") };
    assert_eq!((&*input.name, input.data_type), ("I", DataType::Int32));
    assert_eq!(&input.shape[..], [2, 1]);
    assert_eq!(input.host().expect("host memory"), [1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(&*request.outputs[0], "O");
    assert!(matches!(plan.form_of("O"), AnswerForm::Classes { count, .. } if count.get() == 3));
}

#[test]
fn strings_may_contain_invalid_utf8() {
    let json = b"{\"inputs\":[{\"name\":\"I\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"\xff\xfe\"]}]}";
    let (request, _) = decode_json(json).expect("as Triton");
    assert_eq!(request.inputs[0].host().expect("host memory"), [2, 0, 0, 0, 0xff, 0xfe]);
}

#[test]
fn an_empty_tensor_accepts_any_data() {
    for data in ["[]", "[1]", "5"] {
        assert!(data_of("FP32", "[0]", data).expect("not looked at").is_empty());
    }
}

#[test]
fn binary_tensors_are_slices_of_the_body_in_input_order() {
    let json = r#"{"inputs":[
        {"name":"A","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},
        {"name":"B","shape":[1],"datatype":"INT32","data":[9]},
        {"name":"C","shape":[1],"datatype":"FP16","parameters":{"binary_data_size":2}}]}"#;
    let body = Bytes::from([json.as_bytes(), &[1, 2, 3, 4]].concat());
    let model = model(0, ["A", "B", "C"].map(|name| spec(name, DataType::Fp32, &[-1])).to_vec());
    let (request, _) =
        decode(&body, json.len(), &model, Some(3), &RegionTable::default()).expect("valid");
    assert_eq!(request.model_version, Some(3));
    let data: Vec<&[u8]> = request.inputs.iter().map(|t| t.host().expect("host memory")).collect();
    assert_eq!(data, [&[1, 2][..], &[9, 0, 0, 0], &[3, 4]]);
    assert_eq!(
        request.inputs[0].host().expect("host memory").as_ptr(),
        body[json.len()..].as_ptr()
    );
}

#[test]
fn request_parameters_are_decoded() {
    let (request, plan) = decode_json(
        r#"{"inputs":[],"parameters":{"sequence_id":7,"sequence_start":true,"sequence_end":true,
            "priority":3,"timeout":1500,"binary_data_output":true,"s":"x","i":-4,"u":18446744073709551615,
            "d":1.5,"b":true}}"#,
    )
    .expect("valid");
    assert_eq!(request.correlation_id, CorrelationId::Number(7));
    assert!(request.sequence_start && request.sequence_end);
    assert_eq!((request.priority, request.timeout), (3, Some(Duration::from_micros(1500))));
    assert!(matches!(plan.form_of("any"), AnswerForm::Binary));
    let expected = [
        ("s", ParameterValue::String("x".to_owned())),
        ("i", ParameterValue::Int(-4)),
        ("u", ParameterValue::Uint(u64::MAX)),
        ("d", ParameterValue::Double(1.5)),
        ("b", ParameterValue::Bool(true)),
    ];
    assert_eq!(request.parameters, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn the_first_of_two_equal_keys_counts() {
    let (request, plan) = decode_json(
        r#"{"id":"a","id":"b","parameters":{"x":1,"x":[],"priority":1,"priority":"2","sequence_id":"s",
            "sequence_id":7,"timeout":5,"timeout":6,"binary_data_output":true,"binary_data_output":false},
            "parameters":{"y":1},"inputs":[],"inputs":[{}],
            "outputs":[{"name":"A","name":"B","parameters":{"binary_data":false,"binary_data":true,
            "classification":0,"classification":2}}],"outputs":[]}"#,
    )
    .expect("valid");
    assert_eq!(request.id, "a");
    assert_eq!(request.parameters, [("x".to_owned(), ParameterValue::Int(1))]);
    assert_eq!((request.priority, request.timeout), (1, Some(Duration::from_micros(5))));
    assert_eq!(request.correlation_id, CorrelationId::Text("s".to_owned()));
    assert_eq!(request.outputs.len(), 1);
    assert!(matches!(plan.form_of("A"), AnswerForm::Inline));
    assert!(matches!(plan.form_of("other"), AnswerForm::Binary));
}

#[test]
fn a_byte_order_mark_is_ignored() {
    let (request, _) = decode_json("\u{feff}{\"id\":\"a\",\"inputs\":[]}").expect("valid");
    assert_eq!(request.id, "a");
    decode_json("\u{feff}\u{feff}{}").expect_err("two of them");
}

#[test]
fn zero_and_empty_correlation_ids_mean_no_sequence() {
    for (id, expected) in [
        ("0", CorrelationId::None),
        (r#""""#, CorrelationId::None),
        (r#""s""#, CorrelationId::Text("s".to_owned())),
    ] {
        let json = format!(r#"{{"inputs":[],"parameters":{{"sequence_id":{id}}}}}"#);
        assert_eq!(decode_json(json).expect("valid").0.correlation_id, expected);
    }
}

#[test]
fn the_default_output_form_does_not_apply_to_listed_outputs() {
    let (request, plan) = decode_json(
        r#"{"inputs":[],"parameters":{"binary_data_output":true},
            "outputs":[{"name":"A"},{"name":"B","parameters":{"binary_data":true}}]}"#,
    )
    .expect("valid");
    assert_eq!(request.outputs.len(), 2);
    assert!(matches!(plan.form_of("A"), AnswerForm::Inline));
    assert!(matches!(plan.form_of("B"), AnswerForm::Binary));
}

#[test]
fn raw_bodies_take_the_shape_of_the_only_input() {
    for (max_batch_size, dims, size, expected) in [
        (0, &[-1][..], 8, &[2][..]),
        (8, &[-1], 8, &[1, 2]),
        (0, &[2, -1], 24, &[2, 3]),
        (4, &[4], 16, &[1, 4]),
        (0, &[-1], 0, &[0]),
    ] {
        let model = model(max_batch_size, vec![spec("IN", DataType::Fp32, dims)]);
        let body = Bytes::from(vec![7; size]);
        let (request, plan) =
            decode(&body, 0, &model, None, &RegionTable::default()).expect("fits");
        assert_eq!(&request.inputs[0].shape[..], expected);
        assert_eq!(request.inputs[0].host().expect("host memory"), body);
        assert!(matches!(plan.form_of("OUT"), AnswerForm::Binary));
    }
    let model = model(2, vec![spec("IN", DataType::Bytes, &[1])]);
    let (request, _) =
        decode(&Bytes::from(b"abc".to_vec()), 0, &model, None, &RegionTable::default())
            .expect("one string");
    assert_eq!(&request.inputs[0].shape[..], [1, 1]);
    assert_eq!(request.inputs[0].host().expect("host memory"), b"\x03\0\0\0abc");
}

#[test]
fn a_huge_shape_allocates_no_memory() {
    let shape = "[1000000,1000000,100000]";
    let error = data_of("FP64", shape, "[1]").expect_err("too few");
    assert!(error.message().contains("Shape does not match true shape of 'data' field"));
    let error = data_of("FP64", "[9223372036854775807,9]", "[1]").expect_err("overflow");
    let text = "causes total element count to exceed maximum size of 18446744073709551615";
    assert!(error.message().contains(text), "{error}");
    let error = data_of("FP32", "[4,1152921504606846978]", "[1]").expect_err("overflow");
    assert!(error.message().contains("byte size overflow for input 'I'"), "{error}");
    let error = decode_binary(
        r#"{"inputs":[{"name":"I","shape":[1],"datatype":"FP32",
            "parameters":{"binary_data_size":18446744073709551615}}]}"#,
        &[0; 4],
    )
    .expect_err("short");
    assert!(error.message().contains("expecting 18446744073709551611 additional bytes"), "{error}");
}

//! JSON input data: what is read and what is refused.

use galatea_types::DataType::{self, *};
use proptest::prelude::*;

use super::{super::tests::model, error::PARSE_FAILURE, *};

const MISALIGNED: &str =
    "The 'validation_data' field doesn't align with 'data' field in the json file";

const INT32: &[(DataType, &[i64])] = &[(Int32, &[2])];

#[track_caller]
fn read(tensors: &[(DataType, &[i64])], json: &str) -> Dataset {
    read_json(json.as_bytes(), &model(tensors)).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// What is wrong with the file, after the words that every such failure begins with.
#[track_caller]
fn refused(tensors: &[(DataType, &[i64])], json: &str) -> String {
    let failure = read_json(json.as_bytes(), &model(tensors)).expect_err(json);
    let text = failure.message.strip_prefix("error: Failed to init manager inputs: ");
    text.expect("the words of the original").to_owned()
}

#[track_caller]
fn assert_refused(tensors: &[(DataType, &[i64])], json: &str, text: &str) {
    let refused = refused(tensors, json);
    assert!(refused.starts_with(text), "{refused}");
}

/// The bytes of `INPUT0` in the only step.
#[track_caller]
fn bytes(data_type: DataType, list: &str) -> Vec<u8> {
    let json = format!(r#"{{"data":[{{"INPUT0":{list}}}]}}"#);
    let data = read(&[(data_type, &[2])], &json);
    data.streams[0][0].inputs[0].as_ref().expect("data").data.to_vec()
}

fn steps(data: &Dataset) -> Vec<usize> {
    (0..data.stream_count()).map(|stream| data.step_count(stream)).collect()
}

#[test]
fn objects_are_steps_and_lists_are_streams() {
    let one = r#"{"data":[{"INPUT0":[1,2]},{"INPUT0":[3,4]}]}"#;
    assert_eq!(steps(&read(INT32, one)), [2]);
    let two = r#"{"data":[[{"INPUT0":[1,2]}],[{"INPUT0":[1,2]},{"INPUT0":[3,4]}]]}"#;
    assert_eq!(steps(&read(INT32, two)), [1, 2]);
}

#[test]
fn files_append_steps_or_streams() {
    let model = model(INT32);
    let mut reader = JsonReader::new(&model);
    reader.read(br#"{"data":[{"INPUT0":[1,2]}]}"#).unwrap();
    reader.read(br#"{"data":[{"INPUT0":[1,2]},{"INPUT0":[1,2]}]}"#).unwrap();
    let mixed = reader.read(br#"{"data":[[{"INPUT0":[1,2]}]]}"#).expect_err("a list");
    assert!(
        mixed
            .to_string()
            .starts_with("Inconsistency in input-data provided. Can not have a combination")
    );
    assert_eq!(steps(&reader.finish().unwrap()), [3]);

    let mut reader = JsonReader::new(&model);
    reader.read(br#"{"data":[[{"INPUT0":[1,2]}]]}"#).unwrap();
    reader.read(br#"{"data":[[{"INPUT0":[1,2]},{"INPUT0":[1,2]}]]}"#).unwrap();
    assert_eq!(steps(&reader.finish().unwrap()), [1, 2]);
}

#[test]
fn errors_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d.json");
    let model = model(INT32);
    let read = || JsonReader::new(&model).read_file(&path).expect_err("bad").message;
    assert!(read().contains("failed to open file for reading provided data"));
    std::fs::write(&path, r#"{"data":[{"INPUT0":[1,2]},{"INPUT0":[1,"2"]}]}"#).unwrap();
    let expected = format!(
        "error: Failed to init manager inputs: unable to find int32_t data in json ( Location \
         stream id: 0, step id: 1) for 'INPUT0' in '{}'",
        path.display()
    );
    assert_eq!(read(), expected);
}

#[test]
fn every_form_of_a_tensor_is_read() {
    let expected = [1, 0, 0, 0, 2, 0, 0, 0];
    for form in [
        "[1,2]",
        "[[1],[2]]",
        r#"{"content":[1,2]}"#,
        r#"{"content":[1,2],"shape":[2]}"#,
        r#"{"b64":"AQAAAAIAAAA="}"#,
        r#"{"b64":"AQAAAAIAAAA"}"#,
        r#"{"b64":"AQAA\nAAIAAAA="}"#,
        r#"{"content":{"b64":"AQAAAAIAAAA="},"shape":[2]}"#,
    ] {
        assert_eq!(bytes(Int32, form), expected, "{form}");
    }
}

#[test]
fn elements_of_every_type_are_read() {
    assert_eq!(bytes(Bool, "[true,false]"), [1, 0]);
    assert_eq!(bytes(Uint8, "[0,255]"), [0, 255]);
    assert_eq!(bytes(Int8, "[-128,127]"), [0x80, 0x7F]);
    assert_eq!(bytes(Uint16, "[1,65535]"), [1, 0, 0xFF, 0xFF]);
    assert_eq!(bytes(Int16, "[-2,1]"), [0xFE, 0xFF, 1, 0]);
    assert_eq!(bytes(Uint32, "[0,4294967295]"), [0, 0, 0, 0, 255, 255, 255, 255]);
    assert_eq!(bytes(Uint64, "[18446744073709551615,-0]")[..8], u64::MAX.to_le_bytes());
    assert_eq!(bytes(Int64, "[-9223372036854775808,0]")[..8], i64::MIN.to_le_bytes());
    assert_eq!(bytes(Fp16, "[1.0,-2]"), [0, 0x3C, 0, 0xC0]);
    assert_eq!(bytes(Bf16, "[1.0,-2]"), [0x80, 0x3F, 0, 0xC0]);
    assert_eq!(bytes(Fp32, "[1.5,1]"), [1.5f32.to_le_bytes(), 1f32.to_le_bytes()].concat());
    assert_eq!(bytes(Fp64, "[0.1,-1]"), [0.1f64.to_le_bytes(), (-1f64).to_le_bytes()].concat());
    assert_eq!(bytes(Bytes, r#"["a","b\u00fc"]"#), b"\x01\0\0\0a\x03\0\0\0b\xc3\xbc");
}

#[test]
fn elements_of_another_type_are_refused() {
    for (data_type, list, name) in [
        (Bool, "[1,0]", "bool"),
        (Uint8, "[256,0]", "uint8_t"),
        (Int8, "[128,0]", "int8_t"),
        (Uint16, "[-1,0]", "uint16_t"),
        (Int16, "[true,0]", "int16_t"),
        (Uint32, "[4294967296,0]", "uint32_t"),
        (Int32, "[1.5,0]", "int32_t"),
        (Int32, "[null,0]", "int32_t"),
        (Int32, "[{},0]", "int32_t"),
        (Uint64, "[-1,0]", "uint64_t"),
        (Int64, "[18446744073709551615,0]", "int64_t"),
        (Fp32, r#"["1.0",0]"#, "float"),
        (Fp64, "[false,0]", "fp64"),
        (Bytes, "[1,2]", "string"),
    ] {
        let json = format!(r#"{{"data":[{{"INPUT0":{list}}}]}}"#);
        let text =
            format!("unable to find {name} data in json ( Location stream id: 0, step id: 0)");
        assert_refused(&[(data_type, &[2])], &json, &text);
    }
}

#[test]
fn nan_and_infinity_are_read() {
    let expected = [f32::NEG_INFINITY.to_le_bytes(), f32::INFINITY.to_le_bytes()].concat();
    assert_eq!(bytes(Fp32, "[-Infinity, Inf]"), expected);
    assert!(f64::from_le_bytes(bytes(Fp64, "[NaN, 1]")[..8].try_into().unwrap()).is_nan());
    assert_eq!(bytes(Bytes, r#"["NaN \" Inf", ""]"#)[4..13], *b"NaN \" Inf");
    assert_refused(&[(Fp32, &[2])], r#"{"data":[{"INPUT0":[NaN,,]}]}"#, PARSE_FAILURE);
    assert_refused(&[(Fp32, &[2])], r#"{"data":[{"INPUT0":[1e400,1]}]}"#, PARSE_FAILURE);
}

#[test]
fn data_errors_equal_perf_analyzers() {
    for (step, text) in [
        (r#"{"INPUT0":5}"#, "Input data file is malformed."),
        (r#"{"INPUT0":null}"#, "Input data file is malformed."),
        ("5", "Input data file is malformed."),
        (r#"{"INPUT0":{}}"#, "missing content field. ( Location stream id: 0, step id: 0)"),
        (
            r#"{"INPUT0":{"content":5}}"#,
            "The tensor values are not supported. Expected an array or b64 string ( Location \
             stream id: 0, step id: 0)",
        ),
        (
            r#"{"INPUT0":{"b64":5}}"#,
            "the value of b64 field should be of type string ( Location stream id: 0, step id: 0)",
        ),
        (r#"{"INPUT0":{"content":[1,2],"shape":["a"]}}"#, "shape values must be integers."),
        (
            r#"{"INPUT0":[1,2,3]}"#,
            "mismatch in the data provided for INPUT0. Expected: 8 bytes, Got: 12 bytes",
        ),
        (
            r#"{"INPUT0":{"content":[1,2],"shape":[1,2]}}"#,
            "The supplied shape of [1,2] for input \"INPUT0\" is incompatible with the model's \
             input shape of [2]",
        ),
        ("{}", "missing tensor INPUT0 ( Location stream id: 0, step id: 0)"),
        (
            r#"{"INPUT0":[1,2],"payload":[1]}"#,
            "The input or output 'payload' is not found in the model configuration",
        ),
    ] {
        assert_refused(INT32, &format!(r#"{{"data":[{step}]}}"#), text);
    }
}

#[test]
fn files_without_data_are_refused() {
    for (json, text) in [
        ("", PARSE_FAILURE),
        ("{ nope", PARSE_FAILURE),
        (r#"{"data":[{"INPUT0":[1,2]}]} more"#, PARSE_FAILURE),
        ("[]", "The json file doesn't contain data field"),
        ("{}", "The json file doesn't contain data field"),
        (r#"{"data":5}"#, "The 'data' field must be a list"),
        (r#"{"data":[]}"#, "unable to find data for input 'INPUT0'."),
        (r#"{"data":[[]]}"#, "unable to find data for input 'INPUT0'."),
    ] {
        assert_refused(INT32, json, text);
    }
    let failure = read_json(b"\xff", &model(INT32)).expect_err("no text");
    assert!(failure.message.contains(PARSE_FAILURE));
}

#[test]
fn tensors_of_open_shape_need_a_shape() {
    let open: &[(DataType, &[i64])] = &[(Int64, &[-1])];
    assert_refused(
        open,
        r#"{"data":[{"INPUT0":[1,2]}]}"#,
        "The variable-sized tensor \"INPUT0\" with model shape [-1] needs to have its shape fully \
         defined. See the --shape option.",
    );
    let data = read(open, r#"{"data":[{"INPUT0":{"content":[1,2],"shape":[2]}}]}"#);
    assert_eq!(data.streams[0][0].inputs[0].as_ref().unwrap().shape, [2]);
}

#[test]
fn the_number_of_strings_must_match() {
    let strings: &[(DataType, &[i64])] = &[(Bytes, &[2])];
    assert_refused(
        strings,
        r#"{"data":[{"INPUT0":["a"]}]}"#,
        "mismatch in the data provided for INPUT0. Expected: 2 elements, Got: 1 elements",
    );
    // The length of the only element is wrong.
    assert_refused(
        strings,
        r#"{"data":[{"INPUT0":{"b64":"BQAAAGE="}}]}"#,
        "mismatch in the data provided for INPUT0. Expected: 2 elements, Got: ? elements",
    );
}

#[test]
fn optional_inputs_may_be_missing() {
    let mut model = model(&[(Fp32, &[1]), (Fp32, &[1])]);
    model.inputs[1].optional = true;
    let data = read_json(br#"{"data":[{"INPUT0":[1],"model":"m"}]}"#, &model).unwrap();
    assert!(data.streams[0][0].inputs[0].is_some());
    assert!(data.streams[0][0].inputs[1].is_none());
}

/// What the first step expects.
fn expected(data: &Dataset) -> Vec<Option<&[u8]>> {
    data.streams[0][0].expected.iter().map(Option::as_deref).collect()
}

#[test]
fn outputs_without_expected_data_are_not_compared() {
    let two = &[(Int32, &[1][..]), (Int32, &[1][..])];
    let given = |expected: &str| {
        let json = r#"{"data":[{"INPUT0":[1],"INPUT1":[1]}],"validation_data":[EXPECTED]}"#;
        read(two, &json.replace("EXPECTED", expected))
    };
    assert_eq!(expected(&given(r#"{"OUTPUT1":[3]}"#)), [None, Some(&[3, 0, 0, 0][..])]);
    assert_eq!(expected(&given(r#"{"OUTPUT0":[3]}"#)), [Some(&[3, 0, 0, 0][..]), None]);
    assert!(expected(&given("{}")).is_empty());
}

#[test]
fn validation_data_must_match_the_data() {
    let json = r#"{"data":[{"INPUT0":[1,2]}],"validation_data":[{"OUTPUT0":[3,4]}]}"#;
    assert_eq!(expected(&read(INT32, json)), [Some(&[3, 0, 0, 0, 4, 0, 0, 0][..])]);
    for expected in ["[]", "5", r#"[{"OUTPUT0":[3,4]},{"OUTPUT0":[3,4]}]"#] {
        let json = format!(r#"{{"data":[{{"INPUT0":[1,2]}}],"validation_data":{expected}}}"#);
        assert_refused(INT32, &json, MISALIGNED);
    }
    let json = r#"{"data":[[{"INPUT0":[1,2]}]],"validation_data":[{"OUTPUT0":[3,4]}]}"#;
    assert_refused(INT32, json, MISALIGNED);
    let json = r#"{"data":[{"INPUT0":[1,2]}],"validation_data":[{"NOPE":[1,2]}]}"#;
    assert_refused(INT32, json, "The input or output 'NOPE' is not found");
    let json = r#"{"data":[{"INPUT0":[1,2]}],"validation_data":[{"OUTPUT0":[3]}]}"#;
    assert_refused(INT32, json, "mismatch in the data provided for OUTPUT0. Expected: 8 bytes");
}

#[test]
fn expected_outputs_of_open_shape_need_no_shape() {
    let json = r#"{"data":[{"INPUT0":{"content":[1],"shape":[1]}}],
                   "validation_data":[{"OUTPUT0":[3]}]}"#;
    let data = read(&[(Int32, &[-1])], json);
    assert_eq!(expected(&data), [Some(&[3, 0, 0, 0][..])]);
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "-?[0-9]{1,20}(\\.[0-9]{1,3})?(e[0-9]{1,3})?",
        Just("NaN".to_owned()),
        Just("-Infinity".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just(r#""AAAAAA==""#.to_owned()),
        Just(r#""\ud800x""#.to_owned()),
    ];
    let key = prop_oneof!["INPUT[01]", "OUTPUT[01]", Just("content".to_owned())];
    let key = prop_oneof![key, Just("shape".to_owned()), Just("b64".to_owned()), "[a-z]{1}"];
    leaf.prop_recursive(5, 32, 4, move |inner| {
        let member =
            (key.clone(), inner.clone()).prop_map(|(key, value)| format!("\"{key}\":{value}"));
        let list = prop::collection::vec(inner, 0..4).prop_map(|values| values.join(","));
        let object = prop::collection::vec(member, 0..4).prop_map(|members| members.join(","));
        prop_oneof![
            list.prop_map(|list| format!("[{list}]")),
            object.prop_map(|object| format!("{{{object}}}")),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_text_causes_no_panic(data in value(), expected in value()) {
        let model = model(&[(Fp32, &[-1]), (Bytes, &[2])]);
        let json = format!(r#"{{"data":[{data}],"validation_data":[{expected}]}}"#);
        let _ = read_json(json.as_bytes(), &model);
        let _ = read_json(data.as_bytes(), &model);
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(json in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read_json(&json, &model(INT32));
    }

    #[test]
    fn whole_numbers_round_trip(values in prop::collection::vec(any::<i64>(), 1..20)) {
        let json = format!(r#"{{"data":[{{"INPUT0":{values:?}}}]}}"#);
        let data = read(&[(Int64, &[values.len() as i64])], &json);
        let bytes = &data.streams[0][0].inputs[0].as_ref().unwrap().data;
        let back: Vec<i64> =
            bytes.chunks_exact(8).map(|chunk| i64::from_le_bytes(chunk.try_into().unwrap())).collect();
        prop_assert_eq!(back, values);
    }
}

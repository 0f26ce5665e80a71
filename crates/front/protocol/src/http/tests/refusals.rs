//! What is refused, with status and text.

use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_types::{Code, DataType};

use super::{decode_binary, decode_json, model, spec};
use crate::http::decode;

const PARSE: &str = "failed to parse the request JSON buffer: ";

#[track_caller]
fn check(json: impl AsRef<[u8]>, code: Code, text: &str) {
    let json = json.as_ref();
    let error = decode_json(json).expect_err("refused");
    let shown = String::from_utf8_lossy(json);
    assert_eq!((error.code(), sentence(error.message())), (code, text), "{shown}");
}

/// What Triton says of it, without the advice behind it.
pub(super) fn sentence(message: &str) -> &str {
    let advice = [" (input '", " (inputs[", " (JSON: ", " (request: ", " (outputs: "];
    let ends = advice.iter().filter_map(|begin| message.find(begin));
    message.get(..ends.min().unwrap_or(message.len())).expect("between characters")
}

#[test]
fn errors_have_tritons_sentence_then_place_and_advice() {
    let input = |members: &str| format!(r#"{{"inputs":[{{{members}}}]}}"#);
    let of = |data_type: &str, shape: &str, data: &str| {
        input(&format!(r#""data":{data},"name":"IN","shape":{shape},"datatype":"{data_type}""#))
    };
    let batched = " of shape [-1,2], where -1 stands for the size that your data has";
    for (json, advice) in [
        (of("FP32", "[2]", r#"[1, "secret"]"#), "input 'IN': data[1] is a string, FP32 takes numbers".to_owned()),
        (of("FP32", "[1,3]", "[[1, 2, null]]"), "input 'IN': data[0][2] is null, FP32 takes numbers".into()),
        (of("FP32", "[4]", "[[1, 2], [3, {}]]"), "input 'IN': data[1][1] is an object, FP32 takes numbers".into()),
        (
            of("UINT8", "[3]", "[0, 1, 4711]"),
            "input 'IN': data[2] is a number that does not fit, UINT8 takes whole numbers from 0 to 255".into(),
        ),
        (
            of("INT8", "[2]", "[-128,1.5]"),
            "input 'IN': data[1] is a number that does not fit, INT8 takes whole numbers from -128 to 127".into(),
        ),
        (of("BOOL", "[1]", "[1]"), "input 'IN': data[0] is a number, BOOL takes true and false".into()),
        (of("BYTES", "[2]", r#"["a", 1]"#), "input 'IN': data[1] is a number, BYTES takes strings".into()),
        (of("FP32", "[2]", "[1, 2, 3]"), "input 'IN': its shape takes 2 elements, data has 3".into()),
        (of("FP32", "[2,2]", "[[1], [2]]"), "input 'IN': its shape takes 4 elements, data has 2".into()),
        (of("FP32", "[1]", "5"), "input 'IN': data is an array, of one element too".into()),
        (of("FP32", "2", "[1, 2]"), format!("input 'IN': the model takes FP32{batched}")),
        (of("FP32", "[-1,2]", "[1, 2]"), format!("input 'IN': the model takes FP32{batched}")),
        (of("float32", "[1,2]", "[1, 2]"), format!("input 'IN': the model takes FP32{batched}")),
        (input(r#""name":"X","datatype":"FP32","data":[1]"#), "input 'X': the model's inputs are 'IN'".into()),
        (input(r#""shape":[1],"datatype":"FP32","data":[1]"#), "inputs[0]: the model's inputs are 'IN'".into()),
        (input(r#""name":"IN","shape":[1],"datatype":"FP32""#), "input 'IN': give its elements as 'data'".into()),
        ("{'inputs': []}".into(), "JSON: names and strings stand in double quotes".into()),
        (r#"{"inputs":[],}"#.into(), "JSON: no comma stands behind the last element".into()),
        (r#"{"inputs":[1,]}"#.into(), "JSON: no comma stands behind the last element".into()),
        (r#"{"inputs":[],"a":True}"#.into(), "JSON: it is true and false, in small letters".into()),
        (
            r#"{"instances":[[1]]}"#.into(),
            r#"request: it is an object such as {"inputs":[{"name":"IN","shape":[1,2],"datatype":"FP32","data":[...]}]}"#.into(),
        ),
        (
            r#"{"inputs":[],"outputs":["OUT"]}"#.into(),
            r#"outputs: each is an object such as {"name":"OUT"}"#.into(),
        ),
    ] {
        let body = Bytes::from(json.clone());
        let error = decode(&body, body.len(), &model(4, vec![spec("IN", DataType::Fp32, &[2])]), None, &RegionTable::default())
            .expect_err("refused");
        let message = error.message();
        assert!(message.ends_with(&format!(" ({advice})")), "{json}: {message}");
        assert!(!message.contains("secret") && !message.contains("4711"), "{message}");
    }
}

#[test]
fn advice_takes_no_longer_than_parsing() {
    let (open, close) = ("[".repeat(90), "]".repeat(90));
    let numbers = "1,".repeat(200_000);
    let json = format!(
        r#"{{"inputs":[{{"name":"IN","shape":[200001],"datatype":"FP32","data":{open}{numbers}"x"{close}}}]}}"#
    );
    let error = decode_json(json).expect_err("refused");
    assert!(error.message().contains("[200000] is a string"), "{error}");
}

#[test]
fn syntax_errors_have_tritons_texts_and_offsets() {
    for (json, text) in [
        ("{", "Missing a name for object member. at 1"),
        ("{\"inputs\":[}", "Invalid value. at 11"),
        ("{} x", "The document root must not be followed by other values. at 3"),
        ("{\"a\" 1}", "Missing a colon after a name of object member. at 5"),
        ("{a:1}", "Missing a name for object member. at 1"),
        ("{\"a\":tru}", "Invalid value. at 8"),
        ("{\"a\":1 \"b\":2}", "Missing a comma or '}' after an object member. at 7"),
        ("{\"a\":[1 2]}", "Missing a comma or ']' after an array element. at 8"),
        ("{\"a\":\"x", "Missing a closing quotation mark in string. at 7"),
        ("{\"a\":\"\\q\"}", "Invalid escape character in string. at 6"),
        ("{\"a\":\"\\u12x4\"}", "Incorrect hex digit after \\u escape in string. at 6"),
        ("{\"a\":\"\\ud800\"}", "The surrogate pair in string is invalid. at 6"),
        ("{\"a\":\"\u{1}\"}", "Invalid escape character in string. at 6"),
        ("{\"a\":1.}", "Miss fraction part in number. at 7"),
        ("{\"a\":1e}", "Miss exponent in number. at 7"),
        ("{\"a\":1e999}", "Number too big to be stored in double. at 5"),
        ("{\"a\":01}", "Missing a comma or '}' after an object member. at 6"),
        ("{\"a\":-}", "Invalid value. at 6"),
        ("  ", "The document is empty. at 2"),
        ("{\"a\":1,}", "Missing a name for object member. at 7"),
        ("{\"a\":[1,]}", "Invalid value. at 8"),
        ("{\"a\":", "Invalid value. at 5"),
        ("{\"a\"", "Missing a colon after a name of object member. at 4"),
        ("{\"a\":[", "Invalid value. at 6"),
    ] {
        check(json, Code::Internal, &format!("{PARSE}{text}"));
    }
}

#[test]
fn a_byte_order_mark_is_skipped_and_counted_in_offsets() {
    let json = format!(
        "\u{feff}{}",
        r#"{"inputs":[{"name":"IN","shape":[1],"datatype":"INT32","data":[7]}]}"#
    );
    decode_json(json.as_bytes()).expect("read");
    check("\u{feff}{", Code::Internal, &format!("{PARSE}Missing a name for object member. at 4"));
    check("\u{feff}", Code::Internal, &format!("{PARSE}The document is empty. at 3"));
    check("\u{feff}\u{feff}{}", Code::Internal, &format!("{PARSE}Invalid value. at 3"));
}

#[test]
fn a_syntax_error_comes_before_any_other() {
    let json = r#"{"id":5,"inputs":[{"name":3,"data":[1,"x"]}],"#;
    check(
        json,
        Code::Internal,
        &format!("{PARSE}Missing a name for object member. at {}", json.len()),
    );
}

#[test]
fn missing_and_mistyped_members_are_refused() {
    let missing = |field| {
        format!("Unable to parse '{field}': attempt to access non-existing object member '{field}'")
    };
    for (json, text) in [
        ("[]", missing("inputs")),
        ("5", missing("inputs")),
        ("{}", missing("inputs")),
        (r#"{"inputs":{}}"#, "Unable to parse 'inputs': attempt to access JSON non-array as array".into()),
        (r#"{"id":5}"#, "Unable to parse 'id': attempt to access JSON non-string as string".into()),
        (
            r#"{"inputs":[],"outputs":5}"#,
            "Unable to parse 'outputs': attempt to access JSON non-array as array".into(),
        ),
        (r#"{"inputs":[],"outputs":[{}]}"#, missing("name")),
        (r#"{"inputs":[{"shape":[2],"datatype":"FP32","data":[1,2]}]}"#, missing("name")),
        (r#"{"inputs":[{"name":"I","shape":[2],"data":[1,2]}]}"#, missing("datatype")),
        (r#"{"inputs":[{"name":"I","datatype":"FP32","data":[1,2]}]}"#, missing("shape")),
        (
            r#"{"inputs":[{"name":5,"shape":[2],"datatype":"FP32","data":[1,2]}]}"#,
            "Unable to parse 'name': attempt to access JSON non-string as string".into(),
        ),
        (
            r#"{"inputs":[{"name":"I","shape":2,"datatype":"FP32","data":[1,2]}]}"#,
            "Unable to parse 'shape': attempt to access JSON non-array as array".into(),
        ),
        (
            r#"{"inputs":[{"name":"I","shape":[-1],"datatype":"FP32","data":[1,2]}]}"#,
            "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"
                .into(),
        ),
        (
            r#"{"inputs":[{"name":"I","shape":[2],"datatype":"FP32","data":5}]}"#,
            "Unable to parse 'data': attempt to access JSON non-array as array".into(),
        ),
    ] {
        check(json, Code::Internal, &text);
    }
    check(
        r#"{"inputs":[{"name":"I","shape":[2],"datatype":"FOO","data":[1,2]}]}"#,
        Code::InvalidArg,
        "invalid datatype for input I",
    );
}

#[track_caller]
fn check_data(data_type: &str, data: &str, code: Code, text: &str) {
    let json = format!(
        r#"{{"inputs":[{{"name":"I","shape":[2],"datatype":"{data_type}","data":{data}}}]}}"#
    );
    check(json, code, text);
}

#[test]
fn data_that_does_not_match_the_shape_is_refused() {
    const MISMATCH: &str =
        "Unable to parse 'data': Shape does not match true shape of 'data' field";
    const DOUBLE: &str = "Unable to parse 'data': attempt to access JSON non-number as double";
    const SIGNED: &str =
        "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer";
    const UNSIGNED: &str =
        "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer";
    for (data_type, data, text) in [
        ("FP32", "[1]", MISMATCH),
        ("FP32", "[1,2,3]", MISMATCH),
        ("FP32", "[1,\"a\"]", DOUBLE),
        ("FP32", "[1,null]", DOUBLE),
        ("FP32", "[1,true]", DOUBLE),
        ("FP32", "[1,{}]", DOUBLE),
        ("INT64", "[1.0,1]", SIGNED),
        ("INT64", "[9223372036854775808,1]", SIGNED),
        ("UINT8", "[-1,1]", UNSIGNED),
        ("UINT8", "[true,1]", UNSIGNED),
        ("BOOL", "[1,0]", "Unable to parse 'data': attempt to access JSON non-boolean as boolean"),
        (
            "BYTES",
            "[\"a\",1]",
            "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
        ),
    ] {
        check_data(data_type, data, Code::Internal, text);
    }
    for data_type in ["FP16", "BF16"] {
        let text = format!(
            "receiving {data_type} data via JSON is not supported. Please use the binary data format for \
             input I"
        );
        check_data(data_type, "[1,2]", Code::InvalidArg, &text);
    }
    let out_of_range = "Unable to parse 'data': a value is out of range for datatype UINT8";
    check_data("UINT8", "[256,1]", Code::InvalidArg, out_of_range);
    let deep = format!("{}1,2{}", "[".repeat(101), "]".repeat(101));
    let text = "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)";
    let json =
        format!(r#"{{"inputs":[{{"name":"I","shape":[2],"datatype":"FP32","data":{deep}}}]}}"#);
    let error = decode_json(json).expect_err("too deep");
    assert_eq!(error.code(), Code::InvalidArg);
    assert!(text.ends_with(error.message()), "{error}");
}

#[test]
fn endless_nesting_does_not_overflow_the_stack() {
    for open in ["[", "{\"a\":", "[[{\"a\":"] {
        let error = decode_json(open.repeat(200_000)).expect_err("too deep");
        assert_eq!(error.message(), "JSON nesting depth exceeds maximum allowed limit (100)");
    }
}

#[test]
fn an_input_needs_exactly_one_source_of_data() {
    const RULE: &str = "Input must set only one of the following fields: 'data', 'binary_data_size' in \
                        'parameters', 'shared_memory_region' in 'parameters'. But ";
    for (input, text) in [
        ("5", "no field is set"),
        (r#"{"name":"I","shape":[2],"datatype":"FP32"}"#, "no field is set"),
        (
            r#"{"name":"I","shape":[2],"datatype":"FP32","data":[1,2],"parameters":{"binary_data_size":8}}"#,
            "set 'data' 'binary_data_size'",
        ),
        (
            r#"{"data":[],"parameters":{"shared_memory_region":"r","binary_data_size":8}}"#,
            "set 'data' 'binary_data_size' 'shared_memory_region'",
        ),
    ] {
        check(format!(r#"{{"inputs":[{input}]}}"#), Code::InvalidArg, &format!("{RULE}{text}"));
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let unsigned = "attempt to access JSON non-unsigned-integer as unsigned-integer";
    let boolean = "attempt to access JSON non-boolean as boolean";
    for (parameters, text) in [
        ("[]", "failed to get request params.: attempt to get members for non-object".to_owned()),
        ("5", "failed to get request params.: attempt to get members for non-object".to_owned()),
        (
            r#"{"sequence_id":-1}"#,
            "Unable to parse 'sequence_id': attempt to access JSON non-string as string".to_owned(),
        ),
        (r#"{"sequence_start":1}"#, format!("Unable to parse 'sequence_start': {boolean}")),
        (r#"{"sequence_end":"x"}"#, format!("Unable to parse 'sequence_end': {boolean}")),
        (r#"{"priority":-1}"#, format!("Unable to parse 'priority': {unsigned}")),
        (r#"{"timeout":1.5}"#, format!("Unable to parse 'timeout': {unsigned}")),
        (r#"{"binary_data_output":1}"#, format!("Unable to parse 'binary_data_output': {boolean}")),
    ] {
        check(format!(r#"{{"inputs":[],"parameters":{parameters}}}"#), Code::Internal, &text);
    }
    for value in ["null", "[]", "{}"] {
        check(
            format!(r#"{{"inputs":[],"parameters":{{"foo":{value}}}}}"#),
            Code::InvalidArg,
            "parameter 'foo' has invalid type. It should be either 'int', 'bool', or 'string'.",
        );
    }
    check(
        r#"{"inputs":[],"parameters":{"triton_x":1}}"#,
        Code::InvalidArg,
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    );
}

#[test]
fn invalid_output_parameters_are_refused() {
    for (parameters, code, text) in [
        (
            r#"{"binary_data":1}"#,
            Code::Internal,
            "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
        ),
        (
            r#"{"classification":"1"}"#,
            Code::Internal,
            "Unable to set 'classification': attempt to access JSON non-unsigned-integer as \
             unsigned-integer",
        ),
        (
            r#"{"shared_memory_region":"x"}"#,
            Code::NotFound,
            "Unable to find shared memory region: 'x'",
        ),
        (
            r#"{"shared_memory_region":"x","classification":1}"#,
            Code::InvalidArg,
            "Output can't set both 'shared_memory_region' and 'classification'",
        ),
        (
            r#"{"shared_memory_region":"x","binary_data":true}"#,
            Code::InvalidArg,
            "Output can't set both 'shared_memory_region' and 'binary_data'",
        ),
    ] {
        let json =
            format!(r#"{{"inputs":[],"outputs":[{{"name":"O","parameters":{parameters}}}]}}"#);
        check(json, code, text);
    }
}

#[test]
fn wrong_binary_sizes_are_refused() {
    let json = |size| {
        format!(
            r#"{{"inputs":[{{"name":"I","shape":[2],"datatype":"FP32","parameters":{{"binary_data_size":{size}}}}}]}}"#
        )
    };
    for (size, tail, text) in [
        ("8", 5, "unexpected size for input 'I', expecting 3 additional bytes for model 'm'"),
        ("8", 9, "unexpected additional input data for model 'm'"),
        (
            "-8",
            0,
            "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as \
             unsigned-integer",
        ),
    ] {
        let error = decode_binary(&json(size), &vec![0; tail]).expect_err("refused");
        assert_eq!(error.message(), text);
    }
    let region = r#"{"inputs":[{"name":"I","shape":[2],"datatype":"FP32","parameters":{"shared_memory_region":"r"}}]}"#;
    check(region, Code::NotFound, "Unable to find shared memory region: 'r'");
    let error = decode(
        &Bytes::from(b"{}".to_vec()),
        3,
        &model(0, Vec::new()),
        None,
        &RegionTable::default(),
    );
    let text = "inference header size should be in range (0, 2), got: 3";
    assert_eq!(error.expect_err("refused").message(), text);
}

#[test]
fn raw_bodies_of_the_wrong_size_are_refused() {
    let fp32 = |dims: &[i64]| vec![spec("IN", DataType::Fp32, dims)];
    for (inputs, size, text) in [
        (
            fp32(&[-1]),
            7,
            "input byte size mismatch for input 'raw_input' for model 'm'. Expected 4, got 7",
        ),
        (
            fp32(&[4]),
            32,
            "input byte size mismatch for input 'raw_input' for model 'm'. Expected 16, got 32",
        ),
        (
            [fp32(&[4]), fp32(&[4])].concat(),
            8,
            "Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'm' model \
             configuration",
        ),
        (
            vec![spec("IN", DataType::Bytes, &[-1])],
            3,
            "For BYTE datatype raw input 'IN', the model must have input shape [1]",
        ),
        (
            fp32(&[-1, -1]),
            8,
            "The shape of the raw input 'IN' can not be deduced because there are more than one \
             variable-sized dimension",
        ),
    ] {
        let error = decode(
            &Bytes::from(vec![0; size]),
            0,
            &model(0, inputs),
            None,
            &RegionTable::default(),
        );
        let error = error.expect_err("refused");
        assert_eq!(error.code(), Code::InvalidArg);
        assert_eq!(error.message(), format!("[request id: <id_unknown>] {text}"));
    }
}

#[test]
fn an_input_given_twice_is_refused() {
    let input = r#"{"name":"I","shape":[1],"datatype":"FP32","data":[1]}"#;
    check(
        format!(r#"{{"id":"r","inputs":[{input},{input}]}}"#),
        Code::InvalidArg,
        "[request id: r] input 'I' already exists in request",
    );
}

#[test]
fn an_output_requested_twice_is_refused() {
    check(
        r#"{"inputs":[],"outputs":[{"name":"A"},{"name":"B"},{"name":"A"}]}"#,
        Code::InvalidArg,
        "[request id: <id_unknown>] Duplicate output name 'A' is not allowed in a request: output 'A' already \
         exists in request",
    );
}

#[test]
fn a_long_correlation_id_is_refused() {
    let with = |length| {
        format!(r#"{{"inputs":[],"parameters":{{"sequence_id":"{}"}}}}"#, "s".repeat(length))
    };
    decode_json(with(128)).expect("just short enough");
    check(
        with(129),
        Code::Unsupported,
        "string correlation ID cannot be longer than 128 characters",
    );
}

#[test]
fn a_binary_tensor_without_the_length_header_is_refused() {
    let json = r#"{"inputs":[{"name":"I","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}]}"#;
    check(
        format!("{json}\0\0\u{1}?\0\0\0@"),
        Code::InvalidArg,
        "unexpected size for input 'I', expecting 8 additional bytes for model 'm'",
    );
}

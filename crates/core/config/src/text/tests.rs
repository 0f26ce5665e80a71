//! Texts in every form, and the errors for wrong ones.

use crate::{parse_json, parse_text, plain};

#[track_caller]
fn check(source: &str, json: &str) {
    match parse_text(source) {
        Ok(config) => assert_eq!(config, parse_json(json).unwrap(), "{source}"),
        Err(error) => panic!("{}", error.into_diagnostic("config", source).render(plain)),
    }
}

#[track_caller]
fn check_error(source: &str, expected: &str) {
    let error = parse_text(source).expect_err(source);
    assert_eq!(error.to_string(), expected, "{source}");
}

#[test]
fn reads_every_form_of_the_text_format() {
    check("", "{}");
    check(" # nothing\n", "{}");
    check("max_batch_size : 32", r#"{"max_batch_size": 32}"#);
    check("name:'a' \"b\"\n'c'", r#"{"name": "abc"}"#);
    check("input{dims:4}", r#"{"input": [{"dims": [4]}]}"#);
    check("input < dims: [ ] >", r#"{"input": [{}]}"#);
    check(
        "input: [ { dims: [1,-1] }, < name: 'b' > ]",
        r#"{"input": [{"dims": [1,-1]}, {"name": "b"}]}"#,
    );
    check(
        "input [ ] input { dims: 1 dims: -1, dims: [768]; }",
        r#"{"input": [{"dims": [1,-1,768]}]}"#,
    );
    check(
        "name: 'a', max_batch_size: 0x10; backend: 'b'",
        r#"{"name": "a", "max_batch_size": 16, "backend": "b"}"#,
    );
    check(
        "instance_group { kind: 2 } instance_group { kind: KIND_GPU gpus: 0 }",
        r#"{"instance_group": [{"kind": "KIND_CPU"}, {"kind": "KIND_GPU", "gpus": [0]}]}"#,
    );
    check(
        "response_cache { enable: t } model_transaction_policy { decoupled: False }",
        r#"{"response_cache": {"enable": true}, "model_transaction_policy": {"decoupled": false}}"#,
    );
    check(
        "metric_tags { key: 'a' value: '1' } metric_tags [ { value: '2' key: 'a' }, { key: 'b' } ]",
        r#"{"metric_tags": {"a": "2", "b": ""}}"#,
    );
    check(
        "parameters { value { string_value: 'v' } }",
        r#"{"parameters": {"": {"string_value": "v"}}}"#,
    );
    check("version_policy: { all {} }", r#"{"version_policy": {"all": {}}}"#);
    // A scalar at its default may be given again: it cannot be distinguished from one not given.
    check("max_batch_size: 0 max_batch_size: 8", r#"{"max_batch_size": 8}"#);
}

const MISTAKES: &[(&str, &str)] = &[
    ("nmae: 'x'", "1:1: no field `nmae` in ModelConfig; did you mean `name`?"),
    (
        "input {\n  input_: 1\n}",
        "2:3: no field `input_` in ModelInput; known fields: `name`, `data_type`, `format`, `dims`, `reshape`, `is_shape_tensor`, `allow_ragged_batch`, `optional`, `is_non_linear_format_io`",
    ),
    ("input_ { }", "1:1: no field `input_` in ModelConfig; did you mean `input`?"),
    ("name 'x'", "1:6: expected `:` after `name`, found `'x'`"),
    ("name = 'x'", "1:6: expected `:` after `name`, found `=`; write `:` in place of `=`"),
    ("input { dims [1] }", "1:14: expected `:` after `dims`, found `[`"),
    (
        "max_batch_size { 1 }",
        "1:16: expected `:` after `max_batch_size`, found `{`; `max_batch_size` is a 32-bit integer, not a message",
    ),
    (
        "max_batch_size: \"8\"",
        "1:17: expected a 32-bit integer for `max_batch_size`, found `\"8\"`; remove the quotes",
    ),
    (
        "max_batch_size: 3000000000",
        "1:17: `3000000000` is out of range for `max_batch_size`; `max_batch_size` is a 32-bit integer",
    ),
    (
        "max_batch_size: [8]",
        "1:17: expected a 32-bit integer for `max_batch_size`, found `[`; `max_batch_size` takes one value, not a list",
    ),
    (
        "max_batch_size:",
        "1:16: expected a 32-bit integer for `max_batch_size`, found the end of the file",
    ),
    (
        "name: simple",
        "1:7: expected a string for `name`, found `simple`; put quotes around it: `name: \"simple\"`",
    ),
    ("name: 'a' name: 'b'", "1:11: `name` is given twice in ModelConfig; `name` was given at 1:1"),
    (
        "version_policy { all {} latest {} }",
        "1:25: `latest` cannot stand beside `all`; `all` was given at 1:18",
    ),
    (
        "input { data_type: TYPE_FLOAT }",
        "1:20: `TYPE_FLOAT` is not a value of DataType; did you mean `TYPE_FP32`?",
    ),
    (
        "input { data_type: FP32 }",
        "1:20: `FP32` is not a value of DataType; did you mean `TYPE_FP32`?",
    ),
    (
        "input { data_type: TYPE_INT46 }",
        "1:20: `TYPE_INT46` is not a value of DataType; did you mean `TYPE_INT16` or `TYPE_INT64`?",
    ),
    (
        "instance_group { kind: \"KIND_CPU\" }",
        "1:24: `\"KIND_CPU\"` is not a value of Kind; did you mean `KIND_CPU`?",
    ),
    (
        "instance_group { kind: cpu }",
        "1:24: `cpu` is not a value of Kind; did you mean `KIND_CPU`?",
    ),
    (
        "input {\n dims: 1\n",
        "3:1: expected `}`, found the end of the file; the `{` at 1:7 is not closed",
    ),
    (
        "input [ { dims: 1 }",
        "1:20: expected `]`, found the end of the file; the `[` at 1:7 is not closed",
    ),
    (
        "input [ { dims: 1 ]",
        "1:19: expected a field name or `}`, found `]`; the `{` at 1:9 is still open",
    ),
    ("input [ {} {} ]", "1:12: expected `,` or `]`, found `{`; the `[` at 1:7 is still open"),
    ("input [ {}, ]", "1:13: expected a value, found `]`; remove the comma before `]`"),
    ("input { dims: [1,] }", "1:18: expected a value, found `]`; remove the comma before `]`"),
    (
        "dynamic_batching [ {} ]",
        "1:18: expected `{` for `dynamic_batching`, found `[`; `dynamic_batching` takes one message, not a list",
    ),
    (
        "dynamic_batching: true",
        "1:19: expected `{` for `dynamic_batching`, found `true`; `dynamic_batching` is a message: write `dynamic_batching { ... }`",
    ),
    (
        "name: 'a' }",
        "1:11: expected a field name, found `}`; nothing is open here: one closing too many",
    ),
    (
        "{ name: 'a' }",
        "1:1: expected a field name, found `{`; write the fields of the model without braces around them",
    ),
    ("[a.b]: 1", "1:1: expected a field name, found `[`; extensions are not supported"),
    (
        "name: 'a',,",
        "1:11: expected a field name, found `,`; one separator after a field is enough",
    ),
    ("\u{feff}\u{feff}name: 'a'", "1:1: expected a field name, found `\u{feff}`"),
    ("name: 'a", "1:7: the string is not closed; end it with ' on the same line"),
    ("name: '\\xg'", "1:7: wrong escape in a string: a hexadecimal escape needs its digits"),
    ("name: '\\377'", "1:7: the string is not valid UTF-8"),
    (
        "response_cache { enable: yes }",
        "1:26: expected true or false for `enable`, found `yes`; write `true` or `false`",
    ),
    (
        "dynamic_batching { max_queue_delay_microseconds: -1 }",
        "1:50: `-1` is out of range for `max_queue_delay_microseconds`; `max_queue_delay_microseconds` is a non-negative 64-bit integer",
    ),
];

#[test]
fn errors_name_mistake_and_place() {
    for (source, expected) in MISTAKES {
        check_error(source, expected);
    }
}

#[test]
fn limits_of_size_and_depth_are_enforced() {
    let error = parse_text(&"#".repeat((4 << 20) + 1)).unwrap_err();
    assert_eq!(error.message, "the configuration has more than 4 MiB");
    // Brackets without end neither recurse nor take long.
    assert!(parse_text(&format!("input {}", "[".repeat(1 << 20))).is_err());
    assert!(parse_text(&"input { ".repeat(1 << 18)).is_err());
    let name = "n".repeat(1 << 20);
    assert!(parse_text(&name).unwrap_err().message.len() < 200);
    let many = format!("input {{ dims: [ {} 1 ] }}", "1,".repeat(1 << 15));
    assert_eq!(parse_text(&many).unwrap().input[0].dims.len(), (1 << 15) + 1);
}

#[test]
fn a_text_with_too_many_elements_is_refused() {
    for part in ["input{}", "metric_tags{}", "input{dims:1 dims:1 dims:1}"] {
        let error = parse_text(&part.repeat(70_000)).unwrap_err();
        assert_eq!(error.message, "lists and maps have more than 65536 members together");
    }
}

#[test]
fn a_byte_order_mark_is_ignored() {
    let config = parse_text("\u{feff}name: 'a'").expect("a file of an editor that writes one");
    assert_eq!(config.name, "a");
    assert_eq!(parse_text("\u{feff}").expect("nothing else"), parse_text("").expect("nothing"));
}

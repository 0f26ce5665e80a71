//! JSON in every form, and the errors for wrong documents.

use super::*;
use crate::parse_text;

#[test]
fn reads_every_spelling_of_a_field() {
    let json = r#"{
        "maxBatchSize": "8", "name": "m", "platform": null,
        "input": [{"name": "x", "data_type": "type_fp32", "dims": [1, "2", -1, 3.0], "format": 1}],
        "versionPolicy": {"specific": {"versions": [9223372036854775807]}},
        "dynamic_batching": {"priority_queue_policy": {"2": {"timeout_action": "delay"}}},
        "sequence_batching": null,
        "parameters": {"k": {"string_value": "v"}},
        "model_metrics": {"metric_control": [{"histogram_options": {"buckets": [1, 2.5, "Infinity"]}}]}
    }"#;
    let text = "max_batch_size: 8 name: 'm'
        input { name: 'x' data_type: TYPE_FP32 dims: [1, 2, -1, 3] format: FORMAT_NHWC }
        version_policy { specific { versions: 9223372036854775807 } }
        dynamic_batching { priority_queue_policy { key: 2 value { timeout_action: DELAY } } }
        parameters { key: 'k' value { string_value: 'v' } }
        model_metrics { metric_control { histogram_options { buckets: [1, 2.5, inf] } } }";
    assert_eq!(parse_json(json).unwrap(), parse_text(text).unwrap());
    assert_eq!(parse_json("{}").unwrap(), RawModelConfig::default());
}

#[test]
fn errors_name_the_field_path() {
    let cases = [
        (r#"{"backend": 1}"#, "backend: expected a string, found 1"),
        (r#"{"nope": 1}"#, "no field `nope` in ModelConfig"),
        (r#"{"inputs": []}"#, "no field `inputs` in ModelConfig; did you mean `input`?"),
        (r#"{"max_batch_size": "x"}"#, "max_batch_size: expected an integer, found \"x\""),
        (r#"{"max_batch_size": 1.5}"#, "max_batch_size: expected an integer, found 1.5"),
        (r#"{"max_batch_size": 3000000000}"#, "max_batch_size: 3000000000 is out of range"),
        (r#"{"input": {}}"#, "input: expected an array, found an object"),
        (
            r#"{"input": [{}, {"dims": [1, "a"]}]}"#,
            "input[1].dims[1]: expected an integer, found \"a\"",
        ),
        (
            r#"{"input": [{"data_type": "FP32"}]}"#,
            "input[0].data_type: `FP32` is not a value of DataType; did you mean `TYPE_FP32`?",
        ),
        (r#"{"parameters": {"k": 1}}"#, "parameters[\"k\"]: expected an object, found 1"),
        (r#"{"parameters": []}"#, "parameters: expected an object, found an array"),
        (
            r#"{"dynamic_batching": {}, "sequence_batching": {}}"#,
            "sequence_batching: another member of the same choice is set",
        ),
        (
            r#"{"dynamic_batching": {"preserve_ordering": 1}}"#,
            "dynamic_batching.preserve_ordering: expected true or false, found 1",
        ),
        (
            r#"{"dynamic_batching": {"priority_queue_policy": {"x": {}}}}"#,
            "dynamic_batching.priority_queue_policy[\"x\"]: expected an integer, found \"x\"",
        ),
        ("[]", "expected an object, found an array"),
    ];
    for (json, reason) in cases {
        let error = parse_json(json).unwrap_err();
        assert_eq!(error.message(), format!("Invalid config override: {reason}"), "{json}");
    }
    for json in ["", "{", "{} x", "{\"a\":}"] {
        let error = parse_json(json).unwrap_err();
        assert!(error.message().starts_with("Invalid config override: "), "{json}");
    }
    let deep = "[".repeat(100_000);
    assert!(parse_json(&deep).is_err());
}

#[test]
fn writes_unknown_enums_and_special_floats() {
    let text = "input { data_type: 99 }
        model_metrics { metric_control { histogram_options { buckets: [nan, -inf, inf, 0.1, 1e-9, 3] } } }
        sequence_batching { direct { minimum_slot_utilization: 0.3 } }";
    let json = to_json(&parse_text(text).unwrap());
    for part in [
        "\"data_type\":99",
        "\"buckets\":[\"NaN\",\"-Infinity\",\"Infinity\",0.1,1e-9,3]",
        "\"minimum_slot_utilization\":0.3",
    ] {
        assert!(json.contains(part), "{part} not in {json}");
    }
}

#[test]
fn an_override_with_too_many_elements_is_refused_before_allocation() {
    let many = format!("{{\"input\":[{}{{}}]}}", "{},".repeat(70_000));
    assert_eq!(
        parse_json(&many).unwrap_err().message(),
        "Invalid config override: its lists and maps have more than 65536 members together"
    );
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(5 << 20));
    assert_eq!(
        parse_json(&long).unwrap_err().message(),
        "Invalid config override: it has 5242891 bytes, the limit is 4194304"
    );
}

/// Protobuf's own reader does the same, and so does Triton.
#[test]
fn lenient_json_is_accepted_in_overrides() {
    let strict = parse_json(r#"{"max_batch_size":4,"instance_group":[{"count":2}],"name":"m"}"#);
    let lenient = parse_json("{max_batch_size: 4, 'instance_group': [{count: 2,},], name: 'm',}");
    assert_eq!(lenient.expect("read"), strict.expect("read"));
    parse_json("{max_batch_size: }").expect_err("no value");
}

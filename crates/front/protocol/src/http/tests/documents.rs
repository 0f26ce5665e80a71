//! Metadata, repository index, statistics and repository requests.

use std::time::Duration;

use galatea_telemetry::{
    BatchRecord, ModelStatistics, RequestRecord, ResponseOutcome, ResponseRecord,
    StatisticsSnapshot,
};
use galatea_types::{Code, DataType};

use super::{model, spec};
use crate::{
    http::{decode_index, decode_load, decode_unload, error_body, statistics as document, to_json},
    index_row, model_metadata, model_statistics, server_metadata,
};

fn statistics(snapshot: &StatisticsSnapshot) -> Vec<u8> {
    document(&[model_statistics("m".to_owned(), 1, snapshot)])
}

fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).expect("UTF-8")
}

#[test]
fn metadata_is_written() {
    assert_eq!(
        text(to_json(&server_metadata("triton", "1.0", &["classification", "statistics"]))),
        format!(
            r#"{{"name":"triton","version":"1.0","extensions":["classification","statistics"],"implementation":"{}"}}"#,
            galatea_types::product::NAME_AND_VERSION
        )
    );
    let config = model(8, vec![spec("IN", DataType::Int32, &[16])]);
    assert_eq!(
        text(to_json(&model_metadata(&config, &[1, 3]))),
        r#"{"name":"m","versions":["1","3"],"platform":"identity","inputs":[{"name":"IN","datatype":"INT32","shape":[-1,16]}],"outputs":[{"name":"OUT","datatype":"INT32","shape":[-1,16]}]}"#
    );
}

#[test]
fn the_index_omits_unknown_fields() {
    let rows = [
        index_row("a".to_owned(), None, None, String::new()),
        index_row("b".to_owned(), Some(1), Some("READY"), String::new()),
        index_row("c".to_owned(), Some(2), Some("UNAVAILABLE"), "unloaded".to_owned()),
    ];
    assert_eq!(
        text(to_json(&rows)),
        r#"[{"name":"a"},{"name":"b","version":"1","state":"READY"},{"name":"c","version":"2","state":"UNAVAILABLE","reason":"unloaded"}]"#
    );
}

#[test]
fn statistics_keep_tritons_field_order() {
    let counters = ModelStatistics::default();
    counters.record_execution(
        &BatchRecord { batch_size: 2, inferences: 2, ..Default::default() },
        [RequestRecord::default(), RequestRecord::default()],
    );
    let mut snapshot = counters.snapshot();
    snapshot.last_inference_ms = 5;
    let zero = r#"{"count":0,"ns":0}"#;
    let two = r#"{"count":2,"ns":0}"#;
    let one = r#"{"count":1,"ns":0}"#;
    assert_eq!(
        text(statistics(&snapshot)),
        format!(
            r#"{{"model_stats":[{{"name":"m","version":"1","last_inference":5,"inference_count":2,"execution_count":1,"inference_stats":{{"success":{two},"fail":{zero},"queue":{two},"compute_input":{two},"compute_infer":{two},"compute_output":{two},"cache_hit":{zero},"cache_miss":{zero}}},"response_stats":{{}},"batch_stats":[{{"batch_size":2,"compute_input":{one},"compute_infer":{one},"compute_output":{one}}}],"memory_usage":[]}}]}}"#
        )
    );
}

#[test]
fn response_statistics_keep_tritons_field_order() {
    let counters = ModelStatistics::default();
    let [compute_infer, compute_output] = [3, 4].map(Duration::from_nanos);
    let success =
        ResponseRecord { outcome: ResponseOutcome::Success, compute_infer, compute_output };
    (0..11).for_each(|number| counters.record_response(number, &success));
    let document = text(statistics(&counters.snapshot()));
    let zero = r#"{"count":0,"ns":0}"#;
    let entry = format!(
        r#"{{"compute_infer":{{"count":1,"ns":3}},"compute_output":{{"count":1,"ns":4}},"success":{{"count":1,"ns":7}},"fail":{zero},"empty_response":{zero},"cancel":{zero}}}"#
    );
    let places = ["0", "1", "10", "2", "3"].map(|place| format!(r#""{place}":{entry}"#));
    let begin = format!(r#""response_stats":{{{},"#, places.join(","));
    assert!(document.contains(&begin), "{document}");
}

#[test]
fn error_messages_are_escaped() {
    assert_eq!(text(error_body("a \"b\"\n")), r#"{"error":"a \"b\"\n"}"#);
}

#[test]
fn index_requests_are_parsed() {
    for (body, expected) in
        [("", false), ("{}", false), ("[1]", false), (r#"{"ready":true,"x":[1]}"#, true)]
    {
        assert_eq!(decode_index(body.as_bytes()).expect(body), expected);
    }
    let error = decode_index(br#"{"ready":1}"#).expect_err("no boolean");
    assert_eq!(error.message(), "Invalid value for 'ready': expected a boolean");
    let error = decode_index(b"{bad").expect_err("no JSON");
    let text = "failed to parse the request JSON buffer: Missing a name for object member. at 1";
    assert_eq!((error.code(), error.message()), (Code::Internal, text));
}

#[test]
fn load_requests_are_parsed() {
    let request =
        decode_load(br#"{"parameters":{"config":"{\"name\":\"m\"}","file:1/model.onnx":"AQID"}}"#)
            .expect("valid");
    assert_eq!(request.config.as_deref(), Some(r#"{"name":"m"}"#));
    assert_eq!(request.files["1/model.onnx"].host().expect("host memory"), [1, 2, 3]);
    for (body, text) in [
        (r#"{"parameters":{"foo":"x"}}"#, "unexpected error on creating Triton parameter"),
        (r#"{"parameters":{"config":1}}"#, "attempt to access JSON non-string as string"),
        (r#"{"parameters":[]}"#, "attempt to get members for non-object"),
        (r#"{"parameters":{"file:a":"!"}}"#, "failed to decode the base64 content of 'file:a'"),
    ] {
        assert_eq!(decode_load(body.as_bytes()).expect_err(body).message(), text);
    }
    assert_eq!(decode_load(b"").expect("empty"), Default::default());
}

#[test]
fn load_and_unload_bodies_must_be_objects() {
    for body in ["[]", "5", " \"config\"", "null"] {
        let error = decode_load(body.as_bytes()).expect_err(body);
        assert_eq!(error.message(), "the body of the request must be a JSON object");
        assert_eq!(error.code(), Code::InvalidArg);
        decode_unload(body.as_bytes()).expect_err(body);
    }
}

#[test]
fn unload_requests_are_parsed() {
    for (body, expected) in [
        ("", false),
        (r#"{"parameters":{"unload_dependents":true}}"#, true),
        (r#"{"parameters":{"other":1}}"#, false),
    ] {
        assert_eq!(decode_unload(body.as_bytes()).expect(body), expected);
    }
    assert!(decode_unload(br#"{"parameters":{"unload_dependents":1}}"#).is_err());
}

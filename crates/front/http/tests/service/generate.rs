//! The generate extension.

use crate::{
    Fixture,
    client::Client,
    script::{FAIL, FAIL_AT_END, FOREVER, REPEAT_AT_END, WAIT},
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
const SCRIPT: &str = "/v2/models/script/generate";
const SCRIPT_STREAM: &str = "/v2/models/script/generate_stream";
const NOT_ONE: &str = r#"{"error":"generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"}"#;

fn play(steps: &[i32]) -> String {
    format!(r#"{{"IN":{steps:?}}}"#)
}

fn event(value: i32) -> String {
    format!("data: {{\"OUT\":{value},\"model_name\":\"script\",\"model_version\":\"1\"}}\n\n")
}

#[test]
fn one_response_is_one_chunk() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let reply = client.post("/v2/models/identity_fp32/generate", r#"{"INPUT0":[1,0.5],"id":"q"}"#);
    let text = r#"{"OUTPUT0":[1.0,0.5],"id":"q","model_name":"identity_fp32","model_version":"1"}"#;
    reply.check(200, JSON, text);
    assert_eq!(reply.header_names(), ["Content-Type", "Server", "Transfer-Encoding"]);
    assert_eq!(reply.header("Transfer-Encoding"), Some("chunked"));
    assert_eq!(reply.chunks, [text.len()]);
    let path = "/v2/models/identity_bytes/versions/1/generate";
    let text = r#"{"OUTPUT0":"caf\u00e9\n","model_name":"identity_bytes","model_version":"1"}"#;
    client.post(path, r#"{"INPUT0":"caf\u00e9\n"}"#).check(
        200,
        JSON,
        &text.replace(r"\u00e9", "é"),
    );
}

/// Model, headers, body; status and text.
type Refused<'t> = (&'t str, &'t [(&'t str, &'t str)], &'t str, u16, &'t str);

const REFUSED: [Refused<'_>; 7] = [
    (
        "none",
        &[("Content-Encoding", "gzip")],
        "{}",
        404,
        "Request for unknown model: 'none' is not found",
    ),
    (
        "script/versions/7",
        &[],
        "{}",
        404,
        "Request for unknown model: 'script' version 7 is not found",
    ),
    (
        "script",
        &[("Content-Encoding", "gzip")],
        "{}",
        400,
        "Unsupported content-encoding, only 'identity' is supported.",
    ),
    (
        "script",
        &[],
        "{",
        500,
        "failed to parse the request JSON buffer: Missing a name for object member. at 1",
    ),
    (
        "script",
        &[],
        "",
        500,
        "failed to parse the request JSON buffer: The document is empty. at 0",
    ),
    (
        "script",
        &[],
        "{\"IN\":1.5}",
        500,
        "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer (input 'IN': its value is a \
         number that does not fit, INT32 takes whole numbers from -2147483648 to 2147483647)",
    ),
    (
        "script",
        &[],
        "{\"id\":\"a\"}",
        400,
        "[request id: a] expected 1 inputs but got 0 inputs for model 'script'. Got input(s) [], but missing \
         required input(s) ['IN']. Please provide all required input(s).",
    ),
];

#[test]
fn requests_refused_before_inference_get_a_plain_error() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for form in ["generate", "generate_stream"] {
        for (model, headers, body, status, text) in REFUSED {
            let path = format!("/v2/models/{model}/{form}");
            let reply = client.request("POST", &path, headers, body.as_bytes());
            reply.check(status, JSON, &format!(r#"{{"error":"{text}"}}"#));
            assert_eq!(reply.header_names(), ["Content-Type", "Server", "Content-Length"]);
        }
        let reply = client.get(&format!("/v2/models/script/{form}"));
        reply.check(405, JSON, r#"{"error":"Method Not Allowed"}"#);
    }
}

#[test]
fn generate_expects_exactly_one_response() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let one = r#"{"OUT":4,"model_name":"script","model_version":"1"}"#;
    for (steps, status, text) in [
        (&[][..], 200, NOT_ONE),
        (&[4], 200, one),
        (&[4, REPEAT_AT_END], 200, NOT_ONE),
        (&[4, 5], 200, NOT_ONE),
        (&[4, FAIL], 200, NOT_ONE),
        (&[FAIL], 400, r#"{"error":"as scripted"}"#),
        (&[FAIL_AT_END], 400, r#"{"error":"at the end"}"#),
        (&[FAIL, 4], 400, NOT_ONE),
    ] {
        let reply = client.post(SCRIPT, play(steps));
        reply.check(status, JSON, text);
        assert_eq!(reply.chunks.len(), 1);
    }
}

#[test]
fn every_response_is_an_event() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let failed = "data: {\"error\":\"as scripted\"}\n\n".to_owned();
    for (steps, status, events) in [
        (&[][..], 200, vec![]),
        (&[4, 5, 6], 200, vec![event(4), event(5), event(6)]),
        (&[4, REPEAT_AT_END], 200, vec![event(4), event(4)]),
        (&[4, FAIL, 6], 200, vec![event(4), failed.clone(), event(6)]),
        (&[FAIL, 5], 400, vec![failed, event(5)]),
        (&[FAIL_AT_END], 400, vec!["data: {\"error\":\"at the end\"}\n\n".to_owned()]),
    ] {
        let reply = client.post(SCRIPT_STREAM, play(steps));
        reply.check(status, EVENTS, &events.concat());
        assert_eq!(reply.header_names(), ["Content-Type", "Server", "Transfer-Encoding"]);
        let lengths: Vec<usize> = events.iter().map(String::len).collect();
        assert_eq!(reply.chunks, lengths, "a chunk per event");
    }
    let text =
        "data: {\"OUTPUT0\":[],\"model_name\":\"identity_fp32\",\"model_version\":\"1\"}\n\n";
    let reply = client.post("/v2/models/identity_fp32/generate_stream", r#"{"INPUT0":[]}"#);
    reply.check(200, EVENTS, text);
}

#[test]
fn events_are_sent_as_soon_as_they_exist() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    client.send_post(SCRIPT_STREAM, &play(&[1, WAIT, 2, WAIT, 3]));
    assert_eq!(client.receive_head().status, 200);
    for value in 1..=3 {
        assert_eq!(client.chunk(), event(value).as_bytes(), "before the next one was made");
        if value < 3 {
            fixture.conductor.go_on();
        }
    }
    assert_eq!(client.chunk(), b"");
    assert_eq!(client.get("/v2/health/live").status, 200, "the connection goes on");
}

#[test]
fn a_client_that_disconnects_cancels_its_request() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    client.send_post(SCRIPT_STREAM, &play(&[FOREVER]));
    assert_eq!(client.receive_head().status, 200);
    assert_eq!(client.chunk(), event(1).as_bytes());
    fixture.conductor.wait_for_begin();
    drop(client);
    fixture.conductor.wait_for_cancel();
}

#[test]
fn a_client_that_disconnects_before_the_first_response_cancels_its_request() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    client.send_post(SCRIPT, &play(&[FOREVER]));
    fixture.conductor.wait_for_begin();
    drop(client);
    fixture.conductor.wait_for_cancel();
}

#[test]
fn a_stream_counts_as_in_progress_until_its_end() {
    let mut fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    client.send_post(SCRIPT_STREAM, &play(&[1, WAIT, 2]));
    assert_eq!(client.receive_head().status, 200);
    assert_eq!(client.chunk(), event(1).as_bytes());
    assert_eq!(fixture.server().requests_in_flight(), 1);
    fixture.server().refuse_new_requests();
    fixture.conductor.go_on();
    assert_eq!(client.chunk(), event(2).as_bytes());
    assert_eq!(client.chunk(), b"");
    assert_eq!(fixture.shut_down(std::time::Duration::from_secs(20)), 0, "nothing was cut off");
}

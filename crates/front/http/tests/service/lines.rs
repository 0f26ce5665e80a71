//! Inference answered with a line of JSON per response.

use crate::{
    Fixture,
    client::{Client, HEADER_LENGTH, Reply, fp32},
    script::{FAIL, FAIL_AT_END, FLOOD, FOREVER, LARGE, REPEAT_AT_END, WAIT},
};

const LINES: &str = "application/x-ndjson";
const ACCEPT: (&str, &str) = ("Accept", LINES);
const SCRIPT: &str = "/v2/models/script/infer";

fn request(steps: &[i32], more: &str) -> String {
    let count = steps.len();
    format!(
        r#"{{"inputs":[{{"name":"IN","shape":[{count}],"datatype":"INT32","data":{steps:?}}}]{more}}}"#
    )
}

fn play(client: &mut Client, steps: &[i32], more: &str) -> Reply {
    client.request("POST", SCRIPT, &[ACCEPT], request(steps, more).as_bytes())
}

fn line(value: i32, is_final: bool) -> String {
    format!(
        "{{\"model_name\":\"script\",\"model_version\":\"1\",\"parameters\":{{\"triton_final_response\":{is_final}}},\
         \"outputs\":[{{\"name\":\"OUT\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[{value}]}}]}}\n"
    )
}

#[test]
fn decoupled_models_need_the_json_lines_media_type() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let text =
        r#"{"error":"HTTP end point doesn't support models with decoupled transaction policy"}"#;
    for headers in [&[][..], &[("Accept", "*/*")], &[("Accept", "application/x-ndjson;q=0")]] {
        let body = request(&[1], "");
        client.request("POST", SCRIPT, headers, body.as_bytes()).check(501, "text/plain", text);
    }
}

#[test]
fn every_response_is_a_line() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let failed = "{\"error\":\"as scripted\"}\n".to_owned();
    for (steps, status, lines) in [
        (&[][..], 200, vec![]),
        (&[4, 5], 200, vec![line(4, false), line(5, false)]),
        (&[4, REPEAT_AT_END], 200, vec![line(4, false), line(4, true)]),
        (&[4, FAIL, 6], 200, vec![line(4, false), failed.clone(), line(6, false)]),
        (&[FAIL, 5], 500, vec![failed, line(5, false)]),
        (&[FAIL_AT_END], 503, vec!["{\"error\":\"at the end\"}\n".to_owned()]),
    ] {
        let reply = play(&mut client, steps, "");
        reply.check(status, LINES, &lines.concat());
        assert_eq!(reply.header_names(), ["Content-Type", "Server", "Transfer-Encoding"]);
        assert_eq!(reply.chunks, lines.iter().map(String::len).collect::<Vec<_>>());
    }
}

#[test]
fn an_empty_final_response_is_a_line_on_request() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let more = r#","id":"q","parameters":{"triton_enable_empty_final_response":true}"#;
    let end = r#"{"id":"q","model_name":"script","model_version":"1","parameters":{"triton_final_response":true},"outputs":[]}"#;
    play(&mut client, &[], more).check(200, LINES, &format!("{end}\n"));
    let text = play(&mut client, &[4], more).text();
    assert_eq!(text.lines().count(), 2);
    assert!(text.ends_with(&format!("{end}\n")));
    let text = play(&mut client, &[4, REPEAT_AT_END], more).text();
    assert_eq!(text.lines().count(), 2, "an end with outputs is not announced twice");
}

#[test]
fn models_with_one_response_answer_one_line() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let path = "/v2/models/identity_fp32/infer";
    let reply = client.request("POST", path, &[ACCEPT], fp32("[1]", 1).as_bytes());
    reply.check(200, LINES, concat!(
        r#"{"model_name":"identity_fp32","model_version":"1","parameters":{"triton_final_response":true},"#,
        r#""outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[1],"data":[1.0]}]}"#, "\n"
    ));
    let raw = client.request("POST", path, &[ACCEPT, (HEADER_LENGTH, "0")], &1f32.to_le_bytes());
    assert_eq!((raw.status, raw.text()), (200, reply.text()));
}

#[test]
fn a_request_refused_before_inference_gets_a_plain_error() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for (more, text) in [
        (
            r#","parameters":{"binary_data_output":true}"#,
            "binary outputs cannot be part of an answer in JSON lines: leave out 'binary_data' and 'binary_data_output', or the header 'Accept: application/x-ndjson'",
        ),
        (
            r#","outputs":[{"name":"X"}]"#,
            "unexpected inference output 'X' for model 'script' (its outputs: 'OUT')",
        ),
    ] {
        let reply = play(&mut client, &[1], more);
        reply.check(400, "application/json", &format!(r#"{{"error":"{text}"}}"#));
        assert_eq!(reply.header("Transfer-Encoding"), None);
    }
}

#[test]
fn lines_are_sent_as_soon_as_they_exist() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let body = request(&[1, WAIT, 2], "");
    client.send(crate::client::head("POST", SCRIPT, &[ACCEPT], body.len()) + &body);
    assert_eq!(client.receive_head().status, 200);
    assert_eq!(client.chunk(), line(1, false).as_bytes());
    fixture.conductor.go_on();
    assert_eq!(client.chunk(), line(2, false).as_bytes());
    assert_eq!(client.chunk(), b"");
}

#[test]
fn a_client_that_disconnects_cancels_its_request() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let body = request(&[FOREVER], "");
    client.send(crate::client::head("POST", SCRIPT, &[ACCEPT], body.len()) + &body);
    fixture.conductor.wait_for_begin();
    drop(client);
    fixture.conductor.wait_for_cancel();
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let body = request(&[FLOOD], "");
    client.send(crate::client::head("POST", SCRIPT, &[ACCEPT], body.len()) + &body);
    fixture.conductor.wait_for_begin();
    // It still listens, so nothing but the height of the pile can have ended the request.
    fixture.conductor.wait_for_cancel();
    assert_eq!(client.receive_head().status, 200);
}

#[test]
fn large_responses_arrive_whole() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let reply = play(&mut client, &[LARGE, LARGE, LARGE, 9], "");
    assert_eq!(reply.status, 200);
    let text = reply.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    for line in &lines[..3] {
        assert!(line.len() > 2_000_000 && line.ends_with(",0,0]}]}"));
    }
    assert_eq!(format!("{}\n", lines[3]), line(9, false));
}

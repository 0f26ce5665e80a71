//! Inference requests of all forms.

use galatea_engine::ControlMode;
use galatea_http::HttpOptions;

use crate::{
    Fixture,
    client::{Client, HEADER_LENGTH, fp32},
};

const INFER: &str = "/v2/models/identity_fp32/infer";
const JSON: &str = "application/json";

#[test]
fn json_tensors_round_trip() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    client.post(INFER, fp32("[1,2.5]", 2)).check(
        200,
        JSON,
        r#"{"model_name":"identity_fp32","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[2],"data":[1.0,2.5]}]}"#,
    );
    let request = r#"{"id":"7","inputs":[
        {"name":"INPUT0","shape":[1,4],"datatype":"INT32","data":[[1,2,3,4]]},
        {"name":"INPUT1","shape":[1,4],"datatype":"INT32","data":[[1,1,1,1]]}],
        "outputs":[{"name":"OUTPUT1"}]}"#;
    client.post("/v2/models/simple/versions/1/infer", request).check(
        200,
        JSON,
        r#"{"id":"7","model_name":"simple","model_version":"1","outputs":[{"name":"OUTPUT1","datatype":"INT32","shape":[1,4],"data":[0,1,2,3]}]}"#,
    );
    let stats = client.get("/v2/models/simple/stats").text();
    assert!(stats.contains(r#""inference_count":1,"execution_count":1"#), "{stats}");
}

#[test]
fn small_and_large_binary_tensors_round_trip() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for count in [1usize, 16, 5000, 300_000] {
        let data: Vec<u8> = (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let json = format!(
            r#"{{"inputs":[{{"name":"INPUT0","shape":[{count}],"datatype":"FP32","parameters":{{"binary_data_size":{}}}}}],"parameters":{{"binary_data_output":true}}}}"#,
            data.len()
        );
        let length = json.len().to_string();
        let body = [json.as_bytes(), &data].concat();
        let reply = client.request("POST", INFER, &[(HEADER_LENGTH, &length)], &body);
        assert_eq!(
            (reply.status, reply.header("Content-Type")),
            (200, Some("application/octet-stream"))
        );
        let split =
            reply.header(HEADER_LENGTH).and_then(|v| v.parse().ok()).expect("header length");
        let (json, tensor) = reply.body.split_at(split);
        assert!(String::from_utf8_lossy(json).ends_with(&format!(
            r#""shape":[{count}],"parameters":{{"binary_data_size":{}}}}}]}}"#,
            data.len()
        )));
        assert!(tensor == data, "{count} elements came back the same");
    }
}

#[test]
fn raw_binary_requests_are_accepted() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let data: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let reply = client.request("POST", INFER, &[(HEADER_LENGTH, "0")], &data);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header(HEADER_LENGTH), Some("147"));
    assert_eq!(reply.body[147..], data);
    let reply = client.request("POST", INFER, &[(HEADER_LENGTH, "0")], &data[..7]);
    reply.check(
        400,
        JSON,
        r#"{"error":"[request id: <id_unknown>] input byte size mismatch for input 'raw_input' for model 'identity_fp32'. Expected 4, got 7"}"#,
    );
}

#[test]
fn classification_returns_labels() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let request = r#"{"inputs":[{"name":"INPUT0","shape":[2,3],"datatype":"FP32","data":[1,2,3,9,8,7]}],
        "outputs":[{"name":"OUTPUT0","parameters":{"classification":2}}]}"#;
    client.post("/v2/models/labelled/infer", request).check(
        200,
        JSON,
        r#"{"model_name":"labelled","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"BYTES","shape":[2,2],"data":["3.000000:2:bird","2.000000:1:dog","9.000000:0:cat","8.000000:1:dog"]}]}"#,
    );
}

#[test]
fn errors_leave_the_connection_open() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for (headers, body, status, content_type, text) in [
        (
            &[][..],
            "{",
            500,
            JSON,
            "failed to parse the request JSON buffer: Missing a name for object member. at 1",
        ),
        (
            &[],
            "{}",
            500,
            JSON,
            r#"Unable to parse 'inputs': attempt to access non-existing object member 'inputs' (request: it is an object such as {\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[...]}]})"#,
        ),
        (
            &[],
            r#"{"inputs":[{"name":"X","shape":[1],"datatype":"FP32","data":[1]}]}"#,
            400,
            JSON,
            "unexpected inference input 'X' for model 'identity_fp32' (its inputs: 'INPUT0')",
        ),
        (
            &[],
            r#"{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"INT32","data":[1]}]}"#,
            400,
            JSON,
            "[request id: <id_unknown>] inference input 'INPUT0' data-type is 'INT32', but model 'identity_fp32' expects 'FP32'",
        ),
    ] {
        let expected = format!(r#"{{"error":"{text}"}}"#);
        client.request("POST", INFER, headers, body.as_bytes()).check(
            status,
            content_type,
            &expected,
        );
    }
    assert_eq!(client.post(INFER, fp32("[1]", 1)).status, 200);
}

#[test]
fn invalid_headers_are_refused_before_the_body_is_read() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for (header, status, text) in [
        ((HEADER_LENGTH, "9"), 400, "inference header size should be in range (0, 2), got: 9"),
        ((HEADER_LENGTH, "-1"), 400, "inference header size should be in range (0, 2), got: -1"),
        ((HEADER_LENGTH, "x"), 400, "Unable to parse Inference-Header-Content-Length, got: x"),
        (("Content-Encoding", "br"), 501, "Unsupported compression type"),
    ] {
        let expected = format!(r#"{{"error":"{text}"}}"#);
        client.request("POST", INFER, &[header], b"{}").check(status, "text/plain", &expected);
    }
    assert_eq!(client.post(INFER, fp32("[1]", 1)).status, 200);
}

#[test]
fn bodies_over_the_limit_are_refused() {
    let options = HttpOptions { max_input_size: 1000, ..Default::default() };
    let fixture = Fixture::with(ControlMode::None, options);
    let text = r#"{"error":"request JSON size of 1001 bytes exceeds the maximum allowed input size of 1000 bytes. Use --http-max-input-size to increase the limit."}"#;
    Client::connect(fixture.address).post(INFER, vec![b' '; 1001]).check(400, JSON, text);

    let mut client = Client::connect(fixture.address);
    client.send(format!("POST {INFER} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
    client.send([&b"3e9\r\n"[..], &[b' '; 1001], b"\r\n0\r\n\r\n"].concat());
    let reply = client.receive(false);
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("exceeds the maximum allowed input size of 1000 bytes"));
}

#[test]
fn binary_tensors_may_exceed_the_json_limit() {
    let options = HttpOptions { max_input_size: 1000, ..Default::default() };
    let fixture = Fixture::with(ControlMode::None, options);
    let mut client = Client::connect(fixture.address);
    let tensor = vec![0; 40_000];
    let json = r#"{"inputs":[{"name":"INPUT0","shape":[10000],"datatype":"FP32","parameters":{"binary_data_size":40000}}],"parameters":{"binary_data_output":true}}"#;
    let body = [json.as_bytes(), &tensor].concat();
    let length = json.len().to_string();
    assert_eq!(client.request("POST", INFER, &[(HEADER_LENGTH, &length)], &body).status, 200);
    let text = r#"{"error":"Raw input has a byte_size 40000 which exceeds the maximum allowed input size of 1000 bytes. Use --http-max-input-size to increase the limit."}"#;
    client.request("POST", INFER, &[(HEADER_LENGTH, "0")], &tensor).check(400, JSON, text);
    let raw = client.request("POST", INFER, &[(HEADER_LENGTH, "0")], &tensor[..1000]);
    assert_eq!(raw.status, 200, "{}", raw.text());
    let text = r#"{"error":"request JSON size of 1001 bytes exceeds the maximum allowed input size of 1000 bytes. Use --http-max-input-size to increase the limit."}"#;
    client.request("POST", INFER, &[(HEADER_LENGTH, "1001")], &body).check(400, JSON, text);
    // Two bytes of text for each element of four.
    let zeros = fp32(&format!("[0{}]", ",0".repeat(299)), 300);
    let text = r#"{"error":"input 'INPUT0' of 1200 bytes exceeds the maximum allowed input size of 1000 bytes. Use --http-max-input-size to increase the limit."}"#;
    client.post(INFER, zeros).check(400, JSON, text);
    let flat = format!("{{\"INPUT0\":[0{}]}}", ",0".repeat(299));
    client.post("/v2/models/identity_fp32/generate", flat).check(400, JSON, text);
    let nested = format!("{{\"parameters\":{{\"INPUT0\":[0{}]}}}}", ",0".repeat(299));
    client.post("/v2/models/identity_fp32/generate", nested).check(400, JSON, text);
}

#[test]
fn json_beside_binary_tensors_is_limited_too() {
    let options = HttpOptions { max_input_size: 1000, ..Default::default() };
    let fixture = Fixture::with(ControlMode::None, options);
    let mut client = Client::connect(fixture.address);
    // Its own bytes are longer than the limit, and so is what the text of the other becomes.
    let binary = r#"{"name":"INPUT1","shape":[75,4],"datatype":"INT32","parameters":{"binary_data_size":1200}}"#;
    for (count, is_taken) in [(50, true), (75, false)] {
        let zeros = format!("[0{}]", ",0".repeat(4 * count - 1));
        let json = format!(
            r#"{{"inputs":[{{"name":"INPUT0","shape":[{count},4],"datatype":"INT32","data":{zeros}}},{binary}]}}"#
        );
        let body = [json.as_bytes(), &[0; 1200]].concat();
        let length = json.len().to_string();
        let path = "/v2/models/simple/infer";
        let reply = client.request("POST", path, &[(HEADER_LENGTH, &length)], &body);
        let text =
            "input 'INPUT0' of 1200 bytes exceeds the maximum allowed input size of 1000 bytes";
        assert_eq!(!reply.text().contains(text), is_taken, "{}", reply.text());
    }
}

#[test]
fn a_client_that_sends_a_whole_oversized_body_gets_the_error() {
    let options = HttpOptions { max_input_size: 1000, ..Default::default() };
    let fixture = Fixture::with(ControlMode::None, options);
    let mut client = Client::connect(fixture.address);
    // More than the sockets hold: it can be sent only while somebody reads.
    let reply = client.post(INFER, vec![b' '; 32 << 20]);
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("request JSON size of 33554432 bytes"), "{}", reply.text());
    assert_eq!(client.get("/v2/health/live").status, 200, "the connection goes on");
}

#[test]
fn chunked_bodies_are_accepted() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let json = fp32("[1,2]", 2);
    let (one, two) = json.split_at(20);
    client.send(format!("POST {INFER} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
    client.send(format!("{:x}\r\n{one}\r\n", one.len()));
    client.send(format!("{:x}\r\n{two}\r\n0\r\n\r\n", two.len()));
    let reply = client.receive(false);
    assert!(reply.text().ends_with(r#""data":[1.0,2.0]}]}"#), "{}", reply.text());
}

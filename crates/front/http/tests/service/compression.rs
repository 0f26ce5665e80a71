//! Compressed requests and responses.

use std::io::{Read, Write};

use flate2::{
    Compression,
    read::{GzDecoder, ZlibDecoder},
    write::{GzEncoder, ZlibEncoder},
};

use galatea_engine::ControlMode;
use galatea_http::HttpOptions;

use crate::{
    Fixture,
    client::{Client, HEADER_LENGTH, fp32},
};

const INFER: &str = "/v2/models/identity_fp32/infer";
const ANSWER: &str = r#"{"model_name":"identity_fp32","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[2],"data":[1.0,2.0]}]}"#;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("in memory");
    encoder.finish().expect("in memory")
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("in memory");
    encoder.finish().expect("in memory")
}

fn content(mut decoder: impl Read) -> Vec<u8> {
    let mut content = Vec::new();
    decoder.read_to_end(&mut content).expect("whole");
    content
}

#[test]
fn compressed_requests_are_accepted() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let json = fp32("[1,2]", 2);
    for (name, body) in [("gzip", gzip(json.as_bytes())), ("deflate", deflate(json.as_bytes()))] {
        let reply = client.request("POST", INFER, &[("Content-Encoding", name)], &body);
        reply.check(200, "application/json", ANSWER);
        assert_eq!(reply.header("Content-Encoding"), None);
    }
}

#[test]
fn large_tensors_are_compressed_in_both_directions() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let data: Vec<u8> = (0..300_000).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let json = format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[300000],"datatype":"FP32","parameters":{{"binary_data_size":{}}}}}],"parameters":{{"binary_data_output":true}}}}"#,
        data.len()
    );
    let body = gzip(&[json.as_bytes(), &data].concat());
    let length = json.len().to_string();
    let headers = [
        ("Content-Encoding", "gzip"),
        ("Accept-Encoding", "gzip;q=0.5, deflate"),
        (HEADER_LENGTH, &length),
    ];
    let reply = client.request("POST", INFER, &headers, &body);
    assert_eq!((reply.status, reply.header("Content-Encoding")), (200, Some("deflate")));
    assert_eq!(reply.header("Content-Type"), Some("application/octet-stream"));
    let split = reply.header(HEADER_LENGTH).and_then(|v| v.parse().ok()).expect("header length");
    let whole = content(ZlibDecoder::new(&reply.body[..]));
    assert!(whole[split..] == data, "the tensor came back the same");
}

#[test]
fn responses_are_compressed_on_request_but_errors_never() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let accept = [("Accept-Encoding", "gzip")];
    let reply = client.request("POST", INFER, &accept, fp32("[1,2]", 2).as_bytes());
    assert_eq!(
        reply.header_names(),
        ["Content-Type", "Content-Encoding", "Server", "Content-Length"]
    );
    assert_eq!(content(GzDecoder::new(&reply.body[..])), ANSWER.as_bytes());
    let reply = client.request("POST", INFER, &accept, b"{");
    assert_eq!((reply.status, reply.header("Content-Encoding")), (500, None));
    let reply = client.request("GET", "/v2", &accept, b"");
    assert_eq!((reply.status, reply.header("Content-Encoding")), (200, None));
}

#[test]
fn bodies_that_cannot_be_decompressed_are_refused() {
    let options = HttpOptions { max_input_size: 17 << 20, ..Default::default() };
    let fixture = Fixture::with(ControlMode::None, options);
    let mut client = Client::connect(fixture.address);
    let request = fp32("[1,2]", 2);
    let bomb = deflate(&vec![b' '; 18 << 20]);
    let too_long = "{\"error\":\"decompressed request size of ";
    for (coding, body, header, text) in [
        ("gzip", &b"hello"[..], "0", "{\"error\":\"failed to decompress the request body\"}"),
        ("gzip", b"", "0", "{\"error\":\"there is nothing to decompress\"}"),
        (
            "gzip",
            &gzip(request.as_bytes()),
            "74",
            "{\"error\":\"inference header size should be in range (0, 73), got: 74\"}",
        ),
        ("deflate", &bomb, "0", "{\"error\":\"the request body grows to more than 16777216 bytes"),
        ("deflate", &deflate(&noise(18 << 20)), "0", too_long),
    ] {
        let headers = [("Content-Encoding", coding), (HEADER_LENGTH, header)];
        let reply = client.request("POST", INFER, &headers, body);
        assert_eq!((reply.status, reply.header("Content-Type")), (400, Some("text/plain")));
        assert!(reply.text().starts_with(text), "{}", reply.text());
    }
    let reply = client.request("POST", INFER, &[("Content-Encoding", "br")], b"x");
    assert_eq!((reply.status, reply.header("Accept-Encoding")), (501, Some("gzip, deflate")));
}

/// Bytes that compress, but not by much.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 28) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

//! Chunked bodies: how many chunks there may be, however they come.

use galatea_engine::ControlMode;
use galatea_http::HttpOptions;

use crate::{
    Fixture,
    client::{Client, Reply, fp32},
};

const INFER: &str = "/v2/models/identity_fp32/infer";
const MOST: usize = 65_536;

/// One request whose body comes in chunks of this size; `sent` bytes of it with each write.
fn post_chunked(client: &mut Client, path: &str, body: &[u8], chunk: usize, sent: usize) -> Reply {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut bytes = head.into_bytes();
    for chunk in body.chunks(chunk) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes.chunks(sent).for_each(|part| client.send(part));
    client.receive(false)
}

/// A request of this many bytes.
fn padded(length: usize) -> Vec<u8> {
    let json = fp32("[1,2]", 2);
    let padding = " ".repeat(length - json.len());
    [padding, json].concat().into_bytes()
}

#[test]
fn chunks_up_to_the_limit_are_accepted_and_one_more_is_refused() {
    let fixture = Fixture::start();
    for sent in [7, 1000, usize::MAX] {
        let mut client = Client::connect(fixture.address);
        let reply = post_chunked(&mut client, INFER, &padded(MOST), 1, sent);
        assert_eq!(reply.status, 200, "{sent}: {}", reply.text());
        let reply = post_chunked(&mut client, INFER, &padded(MOST + 1), 1, sent);
        reply.check(
            400,
            "application/json",
            r#"{"error":"Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP chunks."}"#,
        );
        assert_eq!(reply.header("Connection"), Some("close"));
        assert!(client.is_closed());
    }
}

#[test]
fn chunks_split_by_the_network_count_once() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    // Most chunks come in two reads.
    let body = padded(10 * (MOST - 10));
    assert_eq!(post_chunked(&mut client, INFER, &body, 10, 9).status, 200);
    // So do chunks that are longer than what is read at once.
    let body = padded(8 << 20);
    assert_eq!(post_chunked(&mut client, INFER, &body, 1 << 20, 5000).status, 200);
}

#[test]
fn the_chunk_limit_applies_to_every_body() {
    let fixture = Fixture::with(ControlMode::Explicit, HttpOptions::default());
    for path in [
        "/v2/repository/index",
        "/v2/repository/models/simple/load",
        "/v2/repository/models/simple/unload",
    ] {
        let mut client = Client::connect(fixture.address);
        let reply = post_chunked(&mut client, path, &vec![b'A'; MOST + 1], 1, usize::MAX);
        assert!(reply.text().contains("maximum of 65536 non-empty chunks"), "{path}");
        let mut client = Client::connect(fixture.address);
        let reply = post_chunked(&mut client, path, &vec![b'A'; MOST], 1, usize::MAX);
        assert!(reply.text().contains("failed to parse the request JSON buffer"), "{path}");
    }
}

#[test]
fn a_client_that_sends_a_million_chunks_gets_the_error() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let reply = post_chunked(&mut client, INFER, &vec![b'A'; 1_000_000], 1, usize::MAX);
    assert_eq!(reply.status, 400);
    assert!(client.is_closed());
}

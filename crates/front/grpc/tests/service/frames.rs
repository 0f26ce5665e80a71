//! The frames that are sent, one by one.

use std::{io::Write, net::TcpStream, time::Duration};

use galatea_grpc::GrpcOptions;
use prost::Message as _;

use crate::{raw_http2::*, support::*};

/// What is said of one call, up to the end of its response.
fn answer_to(stream: &mut TcpStream, id: u32) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        let frame = next_frame(stream).expect("a frame");
        if frame.stream != id {
            continue;
        }
        let is_last = matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0;
        frames.push(frame);
        if is_last {
            return frames;
        }
    }
}

fn kinds_of(frames: &[Frame]) -> Vec<(u8, u8)> {
    frames.iter().map(|frame| (frame.kind, frame.flags)).collect()
}

/// A call with one message.
fn call(id: u32, method: &str, message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    let body = [&[0], &length[..], message].concat();
    let head = frame(HEADERS, END_HEADERS, id, &head_of_call(method));
    [head, frame(DATA, END_STREAM, id, &body)].concat()
}

const RESPONSE: [(u8, u8); 3] =
    [(HEADERS, END_HEADERS), (DATA, 0), (HEADERS, END_HEADERS | END_STREAM)];

/// `:status: 200`, `content-type: application/grpc`, `grpc-accept-encoding: identity, deflate, gzip`, of which the last two
/// enter the table.
const FIRST_HEAD: &[u8] = b"\x88\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64\x40\x8e\x9a\xca\xc8\xb0\xc8\
    \x42\xd6\x95\x8b\x51\x0f\x21\xaa\x9b\x91\x34\x85\xa9\x26\x4f\xaf\xa5\x24\x2c\xb4\x0d\x25\xfa\x52\x6f\x66\
    \xaf";
/// `grpc-status: 0`
const FIRST_STATUS: &[u8] = b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x81\x07";

#[test]
fn a_response_consists_of_headers_data_and_trailers() {
    let f = Fixture::start();
    let mut stream = connect(&f);
    let simple = vector("identity_fp32", "an id", &[1.0]).encode_to_vec();
    let calls = [(1, "ServerLive", &[][..]), (3, "ModelInfer", &simple), (5, "ServerReady", &[])];
    for (id, method, message) in calls {
        stream.write_all(&call(id, method, message)).expect("writes");
        let frames = answer_to(&mut stream, id);
        assert_eq!(kinds_of(&frames), RESPONSE, "{method}");
        let blocks = [&frames[0].payload[..], &frames[2].payload];
        match id {
            1 => assert_eq!(blocks, [FIRST_HEAD, FIRST_STATUS]),
            _ => assert_eq!(blocks, [&b"\x88\xc0\xbf"[..], b"\xbe"], "all from the table"),
        }
    }
}

#[test]
fn a_refused_call_is_answered_with_one_frame_and_reset() {
    let f = Fixture::start();
    let mut stream = connect(&f);
    let head = frame(HEADERS, END_HEADERS, 1, &head_of_call("Nope"));
    stream.write_all(&head).expect("writes");
    let [answer, reset] = [next_of_call(&mut stream), next_of_call(&mut stream)];
    assert_eq!((answer.kind, answer.flags), (HEADERS, END_HEADERS | END_STREAM));
    // `grpc-status: 12`
    assert!(answer.payload.ends_with(b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x82\x08\xbf"));
    let no_error = Frame { kind: RESET, flags: 0, stream: 1, payload: vec![0; 4] };
    assert_eq!(reset, no_error);
}

fn next_of_call(stream: &mut TcpStream) -> Frame {
    loop {
        let frame = next_frame(stream).expect("a frame");
        if frame.stream > 0 {
            return frame;
        }
    }
}

/// Every 100 ms, with so long for the answer.
fn probing(keepalive_timeout: Duration) -> GrpcOptions {
    let keepalive_time = Duration::from_millis(100);
    GrpcOptions { keepalive_time, keepalive_timeout, ..GrpcOptions::default() }
}

#[test]
fn a_client_that_answers_no_probe_gets_a_goaway() {
    let f = Fixture::with_options(&probing(Duration::from_millis(150)));
    let mut stream = connect(&f);
    let frames = until_the_end(&mut stream);
    let mut said = frames.iter().skip_while(|frame| frame.kind != PING);
    let (ping, goaway) = (said.next().expect("a probe"), said.next().expect("an end"));
    assert_eq!((ping.kind, ping.flags), (PING, 0));
    // No call was seen, and there is nothing wrong.
    assert_eq!((goaway.kind, &goaway.payload[..]), (GOAWAY, &[0; 8][..]));
    assert_eq!(said.next(), None);
}

#[test]
fn a_client_that_answers_probes_is_kept() {
    let f = Fixture::with_options(&probing(Duration::from_secs(20)));
    let mut stream = connect(&f);
    let mut probes = 0;
    while probes < 5 {
        let frame_read = next_frame(&mut stream).expect("a frame");
        if (frame_read.kind, frame_read.flags) == (PING, 0) {
            probes += 1;
            stream.write_all(&frame(PING, ACK, 0, &frame_read.payload)).expect("writes");
        }
    }
    stream.write_all(&call(1, "ServerLive", &[])).expect("writes");
    assert_eq!(kinds_of(&answer_to(&mut stream, 1)), RESPONSE);
}

/// The first GOAWAY leaves room for calls on their way; open calls are answered.
#[test]
fn a_server_that_shuts_down_sends_two_goaways_and_answers_open_calls() {
    let mut f = Fixture::start();
    f.gate.set(true);
    let mut stream = connect(&f);
    let gated = vector("gated", "", &[1.0]).encode_to_vec();
    stream.write_all(&call(1, "ModelInfer", &gated)).expect("writes");
    f.arrival();
    let server = f.server.take().expect("running");
    let ending = std::thread::spawn(move || drop(server));
    let mut said = Vec::new();
    while let Some(received) = next_frame(&mut stream) {
        if (received.kind, received.flags) == (PING, 0) {
            stream.write_all(&frame(PING, ACK, 0, &received.payload)).expect("writes");
        }
        if received.kind == GOAWAY {
            said.push((GOAWAY, received.payload));
            f.gate.set(said.len() < 2);
        } else if received.stream == 1 && received.flags & END_STREAM != 0 {
            said.push((HEADERS, Vec::new()));
        }
    }
    ending.join().expect("no panic");
    let goaway = |last: u32| (GOAWAY, [&last.to_be_bytes()[..], &[0; 4]].concat());
    assert_eq!(said, [goaway(u32::MAX >> 1), goaway(1), (HEADERS, Vec::new())]);
}

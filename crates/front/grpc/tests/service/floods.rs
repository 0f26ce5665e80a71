//! Frames that make work and bring none, from a client that writes them itself.

use std::io::Write;

use galatea_grpc::{GrpcOptions, PingRules};

use crate::{raw_http2::*, support::*};

/// Any number of pings is borne.
fn patient() -> GrpcOptions {
    let pings = PingRules { max_strikes: 0, ..PingRules::default() };
    GrpcOptions { pings, ..GrpcOptions::default() }
}

/// Whether the connection answers a ping behind `flood`, at the rate that `guard` has tests of.
fn is_answered(f: &Fixture, flood: Vec<u8>) -> bool {
    let mut stream = connect(f);
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = std::thread::spawn(move || {
        writer.write_all(&flood)?;
        writer.write_all(&frame(PING, 0, 0, b"the last"))
    });
    let mut frames = std::iter::from_fn(|| next_frame(&mut stream));
    let is_answered = frames.any(|frame| frame.payload == b"the last");
    writing.join().expect("no panic").expect("writes");
    is_answered
}

/// Each flood has more frames than are read at once.
#[test]
fn floods_of_frames_without_calls_do_not_end_the_server() {
    let f = Fixture::with_options(&patient());
    let priorities = frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]).repeat(22_000);
    assert!(is_answered(&f, priorities));
    for one in [frame(PING, 0, 0, b"a flood!"), frame(SETTINGS, 0, 0, &[])] {
        assert!(is_answered(&f, one.repeat(2200)));
    }
}

#[test]
fn too_many_pings_end_the_connection_with_the_reason() {
    let f = Fixture::start();
    for count in [4, 1000] {
        let mut stream = connect(&f);
        stream.write_all(&frame(PING, 0, 0, b"a flood!").repeat(count)).expect("writes");
        let frames = until_the_end(&mut stream);
        let goaway = frames.iter().find(|frame| frame.kind == GOAWAY).expect("a reason");
        assert_eq!(goaway.payload, b"\0\0\0\0\0\0\0\x0btoo_many_pings");
    }
    // Answers to pings are none.
    let mut stream = connect(&f);
    stream.write_all(&frame(PING, 1, 0, b"an ack!!").repeat(20)).expect("writes");
    stream.write_all(&frame(PING, 0, 0, b"the last")).expect("writes");
    stream.shutdown(std::net::Shutdown::Write).expect("ends");
    assert!(until_the_end(&mut stream).iter().all(|frame| frame.kind != GOAWAY));
}

/// Clients begin calls and send no more: a thousand are open, the others are refused, finally the connection too.
#[test]
fn more_than_a_thousand_half_open_calls_are_refused() {
    let f = Fixture::start();
    let mut stream = connect(&f);
    let head = head_of_call("ModelInfer");
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = std::thread::spawn(move || {
        for i in 0..10_000 {
            if writer.write_all(&frame(HEADERS, 4, 2 * i + 1, &head)).is_err() {
                return;
            }
        }
    });
    let (mut refused, mut is_ended) = (0, false);
    while !is_ended && let Some(frame) = next_frame(&mut stream) {
        refused += u32::from(frame.kind == RESET);
        is_ended = frame.kind == GOAWAY;
    }
    drop(stream);
    writing.join().expect("no panic");
    assert!(refused > 0 || is_ended, "none was refused");
    let open = || f.server.as_ref().expect("running").requests_in_flight();
    assert!(open() <= 1000, "{}", open());
    eventually("nothing stays", || open() == 0);
}

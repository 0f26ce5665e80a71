//! Frames that make work and bring none, from a client that writes them itself.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use galatea_grpc::{GrpcOptions, PingRules};

use crate::support::*;

const SETTINGS: u8 = 4;
const PING: u8 = 6;
const PRIORITY: u8 = 2;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Opens a connection.
fn connect(f: &Fixture) -> TcpStream {
    let mut stream = TcpStream::connect(f.address()).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("writes");
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).expect("writes");
    stream
}

/// Any number of pings is borne.
fn patient() -> GrpcOptions {
    let pings = PingRules { max_strikes: 0, ..PingRules::default() };
    GrpcOptions { pings, ..GrpcOptions::default() }
}

/// How long the connection takes until it has answered a ping behind `flood`.
fn time_of_answer(f: &Fixture, flood: Vec<u8>) -> Duration {
    let mut stream = connect(f);
    let start = Instant::now();
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = std::thread::spawn(move || {
        writer.write_all(&flood)?;
        writer.write_all(&frame(PING, 0, 0, b"the last"))
    });
    let mut head = [0; 9];
    loop {
        stream.read_exact(&mut head).expect("a frame");
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).expect("its payload");
        if payload == b"the last" {
            break;
        }
    }
    writing.join().expect("no panic").expect("writes");
    start.elapsed()
}

/// 20,000 are taken at once, and 20,000 a second.
#[test]
fn a_flood_of_priorities_is_read_at_a_rate() {
    let f = Fixture::start();
    let flood = frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]).repeat(40_000);
    let took = time_of_answer(&f, flood);
    assert!(took > Duration::from_millis(700), "{took:?}");
}

/// 2,000 are answered at once, and 2,000 a second.
#[test]
fn floods_of_pings_and_settings_are_read_at_a_rate() {
    let f = Fixture::with_options(&patient());
    for flood in [frame(PING, 0, 0, b"a flood!"), frame(SETTINGS, 0, 0, &[])] {
        let took = time_of_answer(&f, flood.repeat(4000));
        assert!(took > Duration::from_millis(700), "{took:?}");
    }
}

#[test]
fn a_few_frames_beside_calls_cost_no_time() {
    let f = Fixture::with_options(&patient());
    let flood = frame(PING, 0, 0, b"a flood!").repeat(1000);
    let took = time_of_answer(&f, flood);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// What the server sends until it ends the connection.
fn until_the_end(stream: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    let (mut head, mut frames) = ([0; 9], Vec::new());
    while stream.read_exact(&mut head).is_ok() {
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).expect("its payload");
        frames.push((head[3], payload));
    }
    frames
}

#[test]
fn too_many_pings_end_the_connection_with_the_reason() {
    let f = Fixture::start();
    for count in [4, 1000] {
        let mut stream = connect(&f);
        stream.write_all(&frame(PING, 0, 0, b"a flood!").repeat(count)).expect("writes");
        let frames = until_the_end(&mut stream);
        let goaway = frames.iter().find(|(kind, _)| *kind == GOAWAY).expect("a reason");
        assert_eq!(goaway.1, b"\0\0\0\0\0\0\0\x0btoo_many_pings");
    }
    // Answers to pings are none.
    let mut stream = connect(&f);
    stream.write_all(&frame(PING, 1, 0, b"an ack!!").repeat(20)).expect("writes");
    stream.write_all(&frame(PING, 0, 0, b"the last")).expect("writes");
    stream.shutdown(std::net::Shutdown::Write).expect("ends");
    assert!(until_the_end(&mut stream).iter().all(|(kind, _)| *kind != GOAWAY));
}

const RESET: u8 = 3;
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

/// Calls begun and never gone on with: a thousand are open, the others are refused, and in the end the connection is.
#[test]
fn half_open_calls_beyond_a_thousand_are_refused() {
    let f = Fixture::start();
    let mut stream = connect(&f);
    // POST, http, a path and an authority, each written out.
    let mut head = vec![0x83, 0x86];
    for (name, value) in [(4_u8, "/inference.GRPCInferenceService/ModelInfer"), (1, "a")] {
        head.extend([name, value.len() as u8]);
        head.extend(value.as_bytes());
    }
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = std::thread::spawn(move || {
        for i in 0..10_000 {
            if writer.write_all(&frame(HEADERS, 4, 2 * i + 1, &head)).is_err() {
                return;
            }
        }
    });
    let (mut refused, mut is_ended) = (0, false);
    let mut frame_head = [0; 9];
    while !is_ended && stream.read_exact(&mut frame_head).is_ok() {
        let length = u32::from_be_bytes([0, frame_head[0], frame_head[1], frame_head[2]]);
        let mut payload = vec![0; length as usize];
        if stream.read_exact(&mut payload).is_err() {
            break;
        }
        refused += u32::from(frame_head[3] == RESET);
        is_ended = frame_head[3] == GOAWAY;
    }
    drop(stream);
    writing.join().expect("no panic");
    assert!(refused > 0 || is_ended, "none was refused");
    let open = || f.server.as_ref().expect("running").requests_in_flight();
    assert!(open() <= 1000, "{}", open());
    eventually("nothing stays", || open() == 0);
}

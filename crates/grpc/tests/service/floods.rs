//! Frames that make work and bring none, from a client that writes them itself.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

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
    let f = Fixture::start();
    for flood in [frame(PING, 0, 0, b"a flood!"), frame(SETTINGS, 0, 0, &[])] {
        let took = time_of_answer(&f, flood.repeat(4000));
        assert!(took > Duration::from_millis(700), "{took:?}");
    }
}

#[test]
fn a_few_frames_beside_calls_cost_no_time() {
    let f = Fixture::start();
    let flood = frame(PING, 0, 0, b"a flood!").repeat(1000);
    let took = time_of_answer(&f, flood);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

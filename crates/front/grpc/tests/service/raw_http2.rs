//! HTTP/2 by hand.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::support::Fixture;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RESET: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// One that was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Opens a connection.
pub fn connect(f: &Fixture) -> TcpStream {
    let mut stream = TcpStream::connect(f.address()).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("writes");
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).expect("writes");
    stream
}

/// `None` at the end of the connection.
pub fn next_frame(stream: &mut TcpStream) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(Frame { kind, flags, stream: u32::from_be_bytes(id), payload })
}

/// What the server sends until it ends the connection.
pub fn until_the_end(stream: &mut TcpStream) -> Vec<Frame> {
    std::iter::from_fn(|| next_frame(stream)).collect()
}

/// `te: trailers` and `content-type: application/grpc`, each written out.
const FORM: &[u8] = b"\x00\x02te\x08trailers\x0f\x10\x10application/grpc";

/// The header block of a call of the inference service: POST, http, a path and an authority, each written out.
pub fn head_of_call(method: &str) -> Vec<u8> {
    let mut head = vec![0x83, 0x86];
    let path = format!("/inference.GRPCInferenceService/{method}");
    for (name, value) in [(4_u8, path.as_str()), (1, "a")] {
        head.extend([name, value.len() as u8]);
        head.extend(value.as_bytes());
    }
    head.extend(FORM);
    head
}

//! Clients that begin a connection without TLS where it is spoken: they are told so in their own protocol.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::TlsProtocol;
use crate::socket::Socket;

/// What every connection with TLS begins with: a record of a handshake.
pub const HANDSHAKE: u8 = 22;

/// The most that is read of what the client still sends, so that it gets to read the answer: a close with bytes unread
/// resets the connection.
const MOST_DISCARDED: usize = 64 << 10;

const HTTP_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 61\r\n\
    Connection: close\r\n\r\n\
    this port speaks HTTPS: put https:// in place of http:// here\n";

/// SETTINGS without a setting, then GOAWAY (stream 0, PROTOCOL_ERROR) with a text that gRPC's libraries report.
const GRPC_ANSWER: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\
    \x00\x00\x38\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\
    this port speaks TLS: use a secure channel (SSL) for it.";

/// Answers a client that speaks without TLS, where it is one of this port's protocol.
pub async fn answer(mut socket: Socket, first: u8, protocol: TlsProtocol) {
    let text = match protocol {
        TlsProtocol::Http if first.is_ascii_uppercase() => HTTP_ANSWER,
        TlsProtocol::Grpc if first == b'P' => GRPC_ANSWER,
        _ => return,
    };
    if socket.write_all(text).await.is_err() || socket.shutdown().await.is_err() {
        return;
    }
    let mut discarded = [0; 4096];
    let mut left = MOST_DISCARDED;
    while let Ok(count @ 1..) = socket.read(&mut discarded).await {
        match left.checked_sub(count) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_are_those_of_the_texts() {
        let http = String::from_utf8(HTTP_ANSWER.to_vec()).expect("text");
        let (head, body) = http.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", body.len());
        let text = GRPC_ANSWER.len() - 9 - 9 - 8;
        assert_eq!(usize::from(GRPC_ANSWER[11]), text + 8);
    }
}

//! Answers clients that connect without TLS to a port with TLS. HTTP clients get an explanation.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::TlsProtocol;
use crate::socket::Socket;

/// The first byte of every connection with TLS: the type of a handshake record.
pub const HANDSHAKE: u8 = 22;

/// The most bytes that are read and discarded after the answer, so that the client can read it: a close with unread
/// bytes resets the connection.
const MOST_DISCARDED: usize = 64 << 10;

const HTTP_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 62\r\n\
    Connection: close\r\n\r\n\
    this port speaks HTTPS: put https:// in place of http:// here\n";

/// Answers a client that speaks HTTP without TLS. A gRPC client gets no answer: its library reports no text of a
/// connection that never began. If one began and ended with a reason, it reconnects thousands of times a second.
pub async fn answer(mut socket: Socket, first: u8, protocol: TlsProtocol) {
    if protocol != TlsProtocol::Http || !first.is_ascii_uppercase() {
        return;
    }
    if socket.write_all(HTTP_ANSWER).await.is_err() || socket.shutdown().await.is_err() {
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
    fn the_content_length_matches_the_body() {
        let http = String::from_utf8(HTTP_ANSWER.to_vec()).expect("text");
        let (head, body) = http.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", body.len());
    }
}

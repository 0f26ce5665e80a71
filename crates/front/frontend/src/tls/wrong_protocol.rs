//! Clients that begin a connection without TLS where it is spoken: over HTTP they are told so.

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
    Content-Length: 62\r\n\
    Connection: close\r\n\r\n\
    this port speaks HTTPS: put https:// in place of http:// here\n";

/// Answers a client that speaks HTTP without TLS. One of gRPC cannot be told: its library reports no text of a connection
/// that never began, and opens thousands a second where one has begun and is ended with a reason.
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
    fn the_length_is_that_of_the_text() {
        let http = String::from_utf8(HTTP_ANSWER.to_vec()).expect("text");
        let (head, body) = http.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", body.len());
    }
}

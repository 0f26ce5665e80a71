//! The part of Redis's protocol (RESP2) that a cache needs: commands of texts, and replies that are a text, an error, bytes or
//! nothing.
//!
//! It is written here because a reply must be bounded in size and in time as a whole. Client libraries bound each read of the
//! socket, and trust any length.

use std::io::{self, BufRead, Read};

/// Longest line of a reply, in bytes: a longer line is no text or error of a Redis server.
const MAX_LINE: u64 = 64 << 10;

/// A reply of the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// `OK` and the like.
    Text(String),
    /// The reason why the server did not do the command.
    Error(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// The key has no value.
    Nothing,
}

/// Returns the bytes of a command.
pub fn command(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Reads one reply of `most` bytes at most.
///
/// # Errors
/// `InvalidData` for anything else. Nothing more can then be read from the stream.
pub fn read_reply(stream: &mut impl BufRead, most: usize) -> io::Result<Reply> {
    let line = read_line(stream)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(odd)?;
    match kind {
        "+" => Ok(Reply::Text(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" if rest.parse::<i64>().is_ok() => Ok(Reply::Text(rest.to_owned())),
        "$" if rest == "-1" => Ok(Reply::Nothing),
        "$" => {
            let length = rest.parse().map_err(|_| odd())?;
            if length > most {
                return Err(invalid(format!("a reply of {length} bytes, more than {most}")));
            }
            read_bytes(stream, length).map(Reply::Bytes)
        }
        _ => Err(odd()),
    }
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let text = line.strip_suffix(b"\r\n").ok_or_else(odd)?;
    String::from_utf8(text.to_vec()).map_err(|_| odd())
}

/// Reads bytes. The memory grows with the received bytes, not with the announced length.
fn read_bytes(stream: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let with_end = length as u64 + 2;
    stream.take(with_end).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < with_end {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if !bytes.ends_with(b"\r\n") {
        return Err(odd());
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn odd() -> io::Error {
    invalid("a reply that is not Redis's".to_owned())
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8]) -> io::Result<Reply> {
        read_reply(&mut &text[..], 10)
    }

    #[test]
    fn commands_carry_the_lengths_of_their_parts() {
        assert_eq!(command(&[b"GET", b"a\r\nb"]), b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n");
    }

    #[test]
    fn replies_of_every_kind_are_parsed() {
        for (text, reply) in [
            (&b"+OK\r\n"[..], Reply::Text("OK".to_owned())),
            (b":12\r\n", Reply::Text("12".to_owned())),
            (b"-WRONGPASS no\r\n", Reply::Error("WRONGPASS no".to_owned())),
            (b"$-1\r\n", Reply::Nothing),
            (b"$0\r\n\r\n", Reply::Bytes(Vec::new())),
            (b"$4\r\n\r\n\r\n\r\n", Reply::Bytes(b"\r\n\r\n".to_vec())),
        ] {
            assert_eq!(read(text).expect("a reply"), reply);
        }
    }

    #[test]
    fn malformed_replies_are_an_error() {
        for text in [
            &b""[..],
            b"+OK",
            b"\r\n",
            b"+OK\n",
            b"$3\r\nab",
            b"$3\r\nabcd\r\n",
            b"$11\r\n",
            b"$-2\r\n",
            b"$x\r\n",
            b"*2\r\n$1\r\na\r\n",
            b":x\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"+\xff\r\n",
            b"$99999999999999999999\r\n",
            b"$18446744073709551615\r\n",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
        assert!(read(&[b'+'; 100_000]).is_err(), "a line without end");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(&bytes);
            let _ = read(&[b"$5\r\n", &bytes[..]].concat());
        }
    }
}

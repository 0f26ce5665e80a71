//! The codec of HTTP/1: requests are the same, and so is the fault that ends them, however the network cuts the bytes.

use galatea_http1::{BodyDecoder, RequestHead};

use crate::memory::{Bound, bounded};

/// Nothing is made of what comes but a copy of it, and room for the headers of one head.
const BOUND: Bound = Bound { per_byte: 16, base: 64 << 10 };

/// The first byte is the length of the pieces that the others come in.
pub fn run(data: &[u8]) {
    let Some((&length, bytes)) = data.split_first() else { return };
    let whole = bounded(bytes.len(), BOUND, || read(&[bytes]));
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(length).max(1)).collect();
    let cut = bounded(bytes.len(), BOUND, || read(&pieces));
    assert_eq!(cut.requests, whole.requests);
    // What is wrong with a head that comes in pieces is told once its end may have come, or when it has become too long.
    assert!(cut.fault.is_none() || whole.fault.is_some(), "{:?} {:?}", cut.fault, whole.fault);
    assert_eq!(whole.taken + whole.waiting, bytes.len());
}

/// What was read of a connection.
#[derive(Debug, Default)]
struct Connection {
    requests: Vec<u64>,
    fault: Option<String>,
    /// Bytes of requests, and those that are left behind a request that has begun.
    taken: usize,
    waiting: usize,
}

/// The open request: its body, and what it is told apart by.
type Open = (BodyDecoder, Print);

fn read(pieces: &[&[u8]]) -> Connection {
    let (mut connection, mut waiting, mut seen) = (Connection::default(), Vec::new(), 0);
    let mut open: Option<Open> = None;
    for piece in pieces {
        waiting.extend_from_slice(piece);
        connection.waiting = waiting.len();
        loop {
            let step = match &mut open {
                Some(body) => read_body(body, &waiting),
                None => read_head(&waiting, &mut seen, &mut open),
            };
            match step {
                Ok(0) => {}
                Ok(length) => {
                    waiting.drain(..length);
                    connection.taken += length;
                    connection.waiting = waiting.len();
                }
                Err(fault) => {
                    connection.fault = Some(fault);
                    return connection;
                }
            }
            let is_finished = open.as_ref().is_some_and(|(body, _)| body.is_finished());
            if is_finished {
                connection.requests.extend(open.take().map(|(body, print)| print.end(&body)));
            } else if step == Ok(0) {
                break;
            }
        }
    }
    connection
}

fn read_head(bytes: &[u8], seen: &mut usize, open: &mut Option<Open>) -> Result<usize, String> {
    let mut head = RequestHead::default();
    let length = head.read(bytes, *seen).map_err(|error| error.to_string())?;
    *seen = if length.is_some() { 0 } else { bytes.len() };
    if length.is_some() {
        *open = Some((BodyDecoder::new(head.framing()), Print::of(&head)));
    }
    Ok(length.unwrap_or(0))
}

fn read_body((body, print): &mut Open, bytes: &[u8]) -> Result<usize, String> {
    let step = body.step(bytes).map_err(|fault| fault.to_string())?;
    print.add(&bytes[step.skipped..step.skipped + step.data]);
    Ok(step.skipped + step.data)
}

/// A number that requests with anything different differ in.
struct Print(u64);

impl Print {
    fn of(head: &RequestHead) -> Self {
        let mut print = Self(0xcbf2_9ce4_8422_2325);
        print.add(head.method().as_str().as_bytes());
        print.add(head.path().as_bytes());
        print.add(head.query().unwrap_or("\n").as_bytes());
        print.add(&[u8::from(head.keeps_alive()), u8::from(head.expects_continue())]);
        for (name, value) in head.headers() {
            assert!(head.get_all(name).any(|found| found == value), "{name} is not found");
            [name.as_bytes(), b":", value, b"\n"].iter().for_each(|part| print.add(part));
        }
        print
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn end(mut self, body: &BodyDecoder) -> u64 {
        self.add(&body.chunks().to_le_bytes());
        self.0
    }
}

//! One connection of a client that sends any bytes.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    time::Duration,
};

use arbitrary::Arbitrary;

use crate::{
    memory::{Bound, bounded},
    server::{DEADLINE, Server},
};

/// A connection has buffers whatever is sent.
const BOUND: Bound = Bound { per_byte: 32, base: 1 << 20 };
/// An answer is there sooner, mostly.
const PATIENCE: Duration = Duration::from_millis(3);

/// What the client does when it has sent everything.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Ending {
    /// Says that nothing follows, and reads to the end.
    HalfClose,
    /// Reads for a moment first.
    Wait,
    /// Is gone.
    Abort,
}

/// Sends `bytes`, which are `length` when nothing is compressed, on a connection of its own. Panics when the server
/// does not end it, or takes too much memory.
pub fn exchange(server: &Server, bytes: &[u8], length: usize, ending: Ending) {
    bounded(length, BOUND, || {
        let mut stream = server.connect();
        send(&mut stream, bytes);
        match ending {
            Ending::HalfClose => finish(&mut stream),
            Ending::Wait => {
                stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
                drain(&mut stream);
                finish(&mut stream);
            }
            Ending::Abort => {}
        }
        drop(stream);
        server.assert_idle();
    });
}

/// Reads meanwhile, so that neither side waits for the other. Ends early where the server has closed.
fn send(stream: &mut UnixStream, mut bytes: &[u8]) {
    stream.set_nonblocking(true).expect("a mode");
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                drain(stream);
                std::thread::yield_now();
            }
            Err(_) => break,
        }
    }
    stream.set_nonblocking(false).expect("a mode");
}

/// Reads what is there.
fn drain(stream: &mut UnixStream) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

fn finish(stream: &mut UnixStream) {
    // The server may be quicker.
    let _ = stream.shutdown(Shutdown::Write);
    stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                let is_open = error.kind() == ErrorKind::WouldBlock;
                assert!(!is_open, "the server keeps a connection that its client has ended");
                return;
            }
        }
    }
}

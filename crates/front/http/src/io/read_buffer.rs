//! The bytes that were read from a connection and are not used yet.

use std::{
    io,
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::io::collector::READ_BUFFER;

/// The size in bytes of the first read, which is also what an idle connection keeps.
const FIRST: usize = 8 << 10;
/// A read with less room is not worth its system call.
const LEAST: usize = 2 << 10;

/// The bytes between two reads: heads, short bodies, and long bodies in chunks.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    /// The last read filled the buffer, so there is more to read.
    was_filled: bool,
}

impl ReadBuffer {
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Reads once. Returns the number of bytes; 0 at the end of the stream.
    pub fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin + ?Sized),
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let room = self.bytes.capacity() - self.bytes.len();
        let count = ready!(poll_read(context, stream, &mut (&mut self.bytes).limit(room)))?;
        self.was_filled = count == room;
        Poll::Ready(Ok(count))
    }

    /// Grows the buffer while reads fill it, up to [`READ_BUFFER`]. A longer head is refused before.
    fn make_room(&mut self) {
        let capacity = self.bytes.capacity();
        let wanted = match self.was_filled {
            true => (capacity * 2).clamp(FIRST, READ_BUFFER),
            false => capacity.max(FIRST),
        };
        if self.start > 0 && self.bytes.len() + LEAST > capacity.min(wanted) {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let wanted = wanted.max(self.bytes.len() + LEAST);
        self.bytes.reserve_exact(wanted - self.bytes.len());
    }

    /// Shrinks the buffer of a connection that waits for its client to the size for a short request.
    pub fn give_back(&mut self) {
        if self.is_empty() && self.bytes.capacity() > FIRST {
            *self = Self::default();
        }
    }
}

/// Reads once into the room of `into`. Returns the number of bytes.
pub(super) fn poll_read(
    context: &mut Context<'_>,
    stream: &mut (impl AsyncRead + Unpin + ?Sized),
    into: &mut impl BufMut,
) -> Poll<io::Result<usize>> {
    // This future keeps nothing between its polls.
    pin!(stream.read_buf(into)).poll(context)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn fill(buffer: &mut ReadBuffer, mut from: &[u8]) -> usize {
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(count) = buffer.poll_fill(&mut context, &mut from) else { return 0 };
        count.expect("in memory")
    }

    #[test]
    fn unread_bytes_stay_in_order() {
        let (mut buffer, content) = (ReadBuffer::default(), vec![7; 100 << 10]);
        assert_eq!(fill(&mut buffer, b"abcdef"), 6);
        buffer.consume(2);
        assert!(fill(&mut buffer, &content) > 4 << 10);
        assert!(buffer.unread().starts_with(b"cdef\x07"));
        buffer.consume(4);
        assert!(buffer.unread().iter().all(|byte| *byte == 7));
    }

    #[test]
    fn the_buffer_grows_up_to_a_limit_and_shrinks_again() {
        let (mut buffer, content) = (ReadBuffer::default(), vec![7; 1 << 20]);
        for _ in 0..20 {
            fill(&mut buffer, &content);
            buffer.consume(buffer.len());
            assert!(buffer.bytes.capacity() <= READ_BUFFER);
        }
        assert_eq!(buffer.bytes.capacity(), READ_BUFFER);
        buffer.give_back();
        assert_eq!(buffer.bytes.capacity(), 0);
        fill(&mut buffer, b"a");
        buffer.give_back();
        assert_eq!(buffer.unread(), b"a");
    }
}

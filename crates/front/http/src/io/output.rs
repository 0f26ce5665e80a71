//! The output of a connection that waits to be written.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use galatea_http1::{Encoding, LAST_CHUNK, write_chunk_size};
use tokio::io::AsyncWrite;

/// A piece up to this size in bytes is copied into the text.
const COPIED: usize = 4 << 10;
/// The waiting bytes from which no more output is accepted.
const MOST: usize = 64 << 10;
const MOST_PIECES: usize = 16;
/// The slices that one system call writes.
const SLICES: usize = 2 * MOST_PIECES + 1;
/// The buffer bytes that a connection keeps for the next response.
const KEPT: usize = 8 << 10;

/// Heads and short bodies, joined in one text, and the pieces of long bodies, which are not copied.
#[derive(Debug, Default)]
pub(crate) struct Output {
    text: Vec<u8>,
    /// The length of the text that was written.
    written: usize,
    /// The pieces, each with the position in the text that it precedes.
    pieces: VecDeque<(usize, Bytes)>,
    /// Bytes of the pieces.
    in_pieces: usize,
}

impl Output {
    pub fn is_empty(&self) -> bool {
        self.written == self.text.len() && self.pieces.is_empty()
    }

    /// Returns `true` if more can be added to the same write.
    pub fn has_room(&self) -> bool {
        self.text.len() - self.written + self.in_pieces < MOST && self.pieces.len() < MOST_PIECES
    }

    /// Returns the text, to append a head.
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    pub fn push(&mut self, piece: Bytes, encoding: Encoding) {
        if piece.is_empty() {
            return;
        }
        let is_chunk = encoding == Encoding::Chunked;
        if is_chunk {
            write_chunk_size(piece.len(), &mut self.text);
        }
        if piece.len() <= COPIED {
            self.text.extend_from_slice(&piece);
        } else {
            self.in_pieces += piece.len();
            self.pieces.push_back((self.text.len(), piece));
        }
        if is_chunk {
            self.text.extend_from_slice(b"\r\n");
        }
    }

    pub fn end(&mut self, encoding: Encoding) {
        if encoding == Encoding::Chunked {
            self.text.extend_from_slice(LAST_CHUNK);
        }
    }

    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let count = match self.pieces.is_empty() {
                true => Pin::new(&mut *stream).poll_write(context, self.front()),
                false => self.poll_write_pieces(context, stream),
            };
            let count = ready!(count)?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(count);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_pieces(
        &self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (mut count, mut from) = (0, self.written);
        let mut add = |slice| {
            if let Some(free) = slices.get_mut(count) {
                *free = IoSlice::new(slice);
                count += 1;
            }
        };
        for (at, piece) in &self.pieces {
            if from < *at {
                add(self.text.get(from..*at).unwrap_or_default());
            }
            add(piece);
            from = *at;
        }
        if from < self.text.len() {
            add(self.text.get(from..).unwrap_or_default());
        }
        let slices = slices.get(..count).unwrap_or_default();
        Pin::new(stream).poll_write_vectored(context, slices)
    }

    /// Returns the next contiguous bytes to write.
    fn front(&self) -> &[u8] {
        match self.pieces.front() {
            Some((at, piece)) if *at == self.written => piece,
            Some((at, _)) => self.text.get(self.written..*at).unwrap_or_default(),
            None => self.text.get(self.written..).unwrap_or_default(),
        }
    }

    fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let step = count.min(self.front().len());
            match self.pieces.front_mut() {
                Some((at, piece)) if *at == self.written => {
                    piece.advance(step);
                    self.in_pieces -= step;
                    if piece.is_empty() {
                        self.pieces.pop_front();
                    }
                }
                _ if step == 0 => break,
                _ => self.written += step,
            }
            count -= step;
        }
        if self.is_empty() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.written = 0;
        match self.text.capacity() > KEPT {
            true => self.text = Vec::new(),
            false => self.text.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes a few bytes at a time.
    struct Narrow(Vec<u8>, usize);

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.1);
            self.0.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let count = all.len().min(self.1);
            self.0.extend_from_slice(&all[..count]);
            Poll::Ready(Ok(count))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn partial_writes_keep_everything_in_order() {
        let long = Bytes::from((0..5000_u32).map(|n| n as u8).collect::<Vec<u8>>());
        for width in [1, 7, 4999, 5001, usize::MAX] {
            let (mut output, mut stream) = (Output::default(), Narrow(Vec::new(), width));
            output.text().extend_from_slice(b"head;");
            output.push(Bytes::new(), Encoding::Chunked);
            output.push(Bytes::from_static(b"short"), Encoding::Chunked);
            output.push(long.clone(), Encoding::Chunked);
            output.push(long.clone(), Encoding::Plain);
            output.push(Bytes::from_static(b"tail"), Encoding::Chunked);
            output.end(Encoding::Chunked);
            let mut context = Context::from_waker(Waker::noop());
            assert!(output.poll_write(&mut context, &mut stream).is_ready());
            let expected = [
                &b"head;5\r\nshort\r\n1388\r\n"[..],
                &long,
                b"\r\n",
                &long,
                b"4\r\ntail\r\n0\r\n\r\n",
            ];
            assert!(stream.0 == expected.concat(), "{width}");
            assert!(output.is_empty() && output.has_room() && output.in_pieces == 0);
        }
    }
}

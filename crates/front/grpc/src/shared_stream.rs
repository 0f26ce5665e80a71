//! Joins the short writes of a connection, because HTTP/2 writes and flushes after every data frame.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use galatea_types::LockExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that are copied to be joined: the head, the message and the status of a short response.
const MOST_JOINED: usize = 4 << 10;

/// A stream shared by HTTP/2 and the task of the connection. Output that HTTP/2 flushes is sent when the task writes it
/// out.
pub(crate) struct SharedStream<S>(Arc<Mutex<StreamTask<S>>>);

impl<S> Clone for SharedStream<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct StreamTask<S> {
    stream: S,
    buffer: Vec<u8>,
    /// The written part of the buffer.
    written: usize,
    /// Is `true` if the output so far ends with a whole frame.
    is_whole: bool,
}

impl<S> SharedStream<S> {
    pub fn new(stream: S) -> Self {
        let joining = StreamTask { stream, buffer: Vec::new(), written: 0, is_whole: true };
        Self(Arc::new(Mutex::new(joining)))
    }
}

impl<S: AsyncWrite + Unpin> SharedStream<S> {
    pub fn poll_write_out(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut joining = self.0.lock_unpoisoned();
        ready!(joining.poll_buffer(cx))?;
        match joining.is_whole {
            true => Pin::new(&mut joining.stream).poll_flush(cx),
            // HTTP/2 still has to write the rest of a frame.
            false => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> StreamTask<S> {
    /// Returns `true` if `more` bytes still fit.
    fn has_room(&self, more: usize) -> bool {
        self.buffer.len() + more <= MOST_JOINED
    }

    fn poll_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(left @ [_, ..]) = self.buffer.get(self.written..) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.buffer.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SharedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock_unpoisoned().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut joining = self.0.lock_unpoisoned();
        joining.is_whole = false;
        if joining.has_room(bytes.len()) {
            joining.buffer.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(joining.poll_buffer(cx))?;
        Pin::new(&mut joining.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut joining = self.0.lock_unpoisoned();
        joining.is_whole = false;
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if joining.has_room(length) {
            pieces.iter().for_each(|piece| joining.buffer.extend_from_slice(piece));
            return Poll::Ready(Ok(length));
        }
        ready!(joining.poll_buffer(cx))?;
        Pin::new(&mut joining.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock_unpoisoned().stream.is_write_vectored()
    }

    /// Leaves the flush to the task: [`SharedStream::poll_write_out`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock_unpoisoned().is_whole = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut joining = self.0.lock_unpoisoned();
        ready!(joining.poll_buffer(cx))?;
        Pin::new(&mut joining.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes some bytes at a time; every third write waits.
    #[derive(Default)]
    struct Slow {
        taken: Vec<u8>,
        writes: usize,
        flushed_at: Vec<usize>,
        at_a_time: usize,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes += 1;
            if self.writes.is_multiple_of(3) && self.at_a_time < usize::MAX {
                return Poll::Pending;
            }
            let taken = bytes.len().min(self.at_a_time);
            self.taken.extend(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            let length = self.taken.len();
            self.flushed_at.push(length);
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn slow(at_a_time: usize) -> SharedStream<Slow> {
        SharedStream::new(Slow { at_a_time, ..Slow::default() })
    }

    #[test]
    fn short_writes_are_sent_as_one() {
        let mut joined = slow(usize::MAX);
        let mut cx = Context::from_waker(Waker::noop());
        for piece in [&b"head"[..], b"message", b"status"] {
            assert!(Pin::new(&mut joined).poll_write(&mut cx, piece).is_ready());
            assert!(Pin::new(&mut joined).poll_flush(&mut cx).is_ready());
        }
        assert_eq!(joined.0.lock_unpoisoned().stream.writes, 0);
        assert!(joined.poll_write_out(&mut cx).is_ready());
        let joining = joined.0.lock_unpoisoned();
        assert_eq!((joining.stream.writes, &joining.stream.flushed_at[..]), (1, &[17][..]));
        assert_eq!(joining.stream.taken, b"headmessagestatus");
    }

    /// The stream accepts any number of bytes at a time: none is lost, and flushes come only between frames.
    #[test]
    fn frames_are_sent_whole_and_in_order() {
        let lengths = [3, 4096, 1, 5000, 10, 4090, 6, 7, 20_000, 2];
        for at_a_time in [1, 100, 4096, 7000, usize::MAX] {
            let mut joined = slow(at_a_time);
            let mut cx = Context::from_waker(Waker::noop());
            let (mut sent, mut ends) = (Vec::new(), vec![0]);
            for (n, length) in lengths.into_iter().enumerate() {
                let frame = vec![n as u8; length];
                let mut left = &frame[..];
                while !left.is_empty() {
                    let (a, b) = left.split_at(left.len() / 2);
                    let pieces = [IoSlice::new(a), IoSlice::new(b)];
                    let polled = Pin::new(&mut joined).poll_write_vectored(&mut cx, &pieces);
                    if let Poll::Ready(Ok(written)) = polled {
                        left = &left[written..];
                    }
                    while joined.poll_write_out(&mut cx).is_pending() {}
                }
                assert!(Pin::new(&mut joined).poll_flush(&mut cx).is_ready());
                sent.extend(frame);
                ends.push(sent.len());
            }
            while Pin::new(&mut joined).poll_shutdown(&mut cx).is_pending() {}
            let joining = joined.0.lock_unpoisoned();
            assert!(joining.stream.taken == sent, "{at_a_time}");
            assert!(joining.stream.flushed_at.iter().all(|end| ends.contains(end)));
        }
    }
}

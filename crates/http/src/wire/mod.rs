//! What is read from a connection, seen before HTTP/1 is parsed: for what the parser does not tell.
//!
//! Only looked at, never changed, and nothing here decides where a request ends.

mod chunks;
mod heads;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use galatea_types::LockExt;
use http::{HeaderMap, Request};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) use self::{
    chunks::{ChunkCount, TooManyChunks},
    heads::SentHeaders,
};

use self::heads::Heads;

/// What was read last from one connection; written by its stream, read by its requests.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    reads: AtomicU64,
    start: AtomicUsize,
    end: AtomicUsize,
    /// Only where names of headers are asked for as they were sent.
    heads: Option<Mutex<Heads>>,
}

/// The last bytes read: by where they lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastRead {
    /// How many reads there were.
    number: u64,
    start: usize,
    end: usize,
}

impl Wire {
    pub fn new(keeps_heads: bool) -> Arc<Self> {
        Arc::new(Self { heads: keeps_heads.then(Mutex::default), ..Self::default() })
    }

    fn read(&self, bytes: &[u8]) {
        let range = bytes.as_ptr_range();
        self.start.store(range.start.addr(), Relaxed);
        self.end.store(range.end.addr(), Relaxed);
        self.reads.store(self.reads.load(Relaxed).wrapping_add(1), Relaxed);
        if let Some(heads) = &self.heads {
            heads.lock_unpoisoned().read(bytes);
        }
    }

    fn last_read(&self) -> LastRead {
        let [start, end] = [&self.start, &self.end].map(|address| address.load(Relaxed));
        LastRead { number: self.reads.load(Relaxed), start, end }
    }

    /// The headers of a request that has just been parsed, as they were sent. To be asked before its body is read.
    pub fn sent_headers<B>(&self, request: &Request<B>) -> Option<SentHeaders> {
        self.heads.as_ref()?.lock_unpoisoned().take(request)
    }
}

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHeaders<'r> {
    pub parsed: &'r HeaderMap,
    /// As they were sent, where that is known.
    pub sent: Option<&'r SentHeaders>,
}

/// A connection whose reads are noted.
pub(crate) struct Seen<S> {
    pub stream: S,
    pub wire: Arc<Wire>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Seen<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.wire.read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Seen<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

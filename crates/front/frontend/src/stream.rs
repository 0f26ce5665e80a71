//! The byte stream of a connection.

use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_util::io::InspectReader;

/// The byte stream of a connection, as a protocol reads and writes it.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns ready when the client has closed its side, even while unread bytes remain, and does not consume those.
    /// The task is woken when the client closes.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

impl<S: Stream, F: FnMut(&[u8]) + Unpin + Send + 'static> Stream for InspectReader<S, F> {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_closed(context)
    }
}

/// A stream in memory cannot tell before it is read to its end.
impl Stream for DuplexStream {
    fn poll_closed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

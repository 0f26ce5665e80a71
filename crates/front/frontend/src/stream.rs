//! The bytes of a connection, whatever carries them.

use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_util::io::InspectReader;

/// The bytes of a connection, as a protocol reads and writes them.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ready when the client has closed its side, also behind bytes that are not read yet: they stay where they are. The
    /// task is woken when that happens.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

impl<S: Stream, F: FnMut(&[u8]) + Unpin + Send + 'static> Stream for InspectReader<S, F> {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_closed(context)
    }
}

/// One in memory cannot tell before it is read to its end.
impl Stream for DuplexStream {
    fn poll_closed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

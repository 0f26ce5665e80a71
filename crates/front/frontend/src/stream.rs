//! The byte stream of a connection.

use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_util::io::InspectReader;

use crate::passed_descriptors::PassedDescriptors;

/// The byte stream of a connection, as a protocol reads and writes it.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns ready when the client has closed its side, even while unread bytes remain, and does not consume those.
    /// The task is woken when the client closes.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Takes the descriptors that the client passes from now on, if this is a Unix socket without TLS. Otherwise the system
    /// closes them.
    fn accept_descriptors(&mut self) {}

    /// Returns the descriptors that came with the bytes read since the last call.
    fn take_descriptors(&mut self) -> PassedDescriptors {
        PassedDescriptors::default()
    }
}

impl<S: Stream, F: FnMut(&[u8]) + Unpin + Send + 'static> Stream for InspectReader<S, F> {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_closed(context)
    }

    fn accept_descriptors(&mut self) {
        self.get_mut().accept_descriptors();
    }

    fn take_descriptors(&mut self) -> PassedDescriptors {
        self.get_mut().take_descriptors()
    }
}

/// A stream in memory cannot tell before it is read to its end.
impl Stream for DuplexStream {
    fn poll_closed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

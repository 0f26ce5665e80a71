//! The stream of a connection of the program: the socket itself, or TLS on it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::{repeated_log::RepeatedLog, socket::Socket, stream::Stream, tls::HANDSHAKE};

/// A connection as protocols read and write it.
#[derive(Debug)]
pub enum Connection {
    /// The socket itself.
    Plain {
        /// Accepted.
        socket: Socket,
        /// Until the first bytes are there.
        unread: Option<Arc<UnexpectedTls>>,
    },
    /// Encrypted. In a box: it has some kilobytes, which a plain connection is not to pay for.
    Tls(Box<TlsStream<Socket>>),
}

/// Tells of clients that speak TLS where it is not spoken.
#[derive(Debug, Default)]
pub struct UnexpectedTls(RepeatedLog);

impl UnexpectedTls {
    fn look_at(&self, first: &[u8]) {
        if let [HANDSHAKE, 3, ..] = first {
            self.0.warn(|| {
                "a client speaks TLS to a port that does not: have it use http:// or an insecure channel, or start the server \
                 with --https-cert and --https-key (HTTP) or --grpc-use-ssl (gRPC)"
                    .to_owned()
            });
        }
    }
}

impl Connection {
    pub(crate) fn plain(socket: Socket, unexpected: Arc<UnexpectedTls>) -> Self {
        Self::Plain { socket, unread: Some(unexpected) }
    }
}

/// The same with the stream of either kind.
macro_rules! each {
    ($connection:expr, $stream:ident => $does:expr) => {
        match $connection {
            Self::Plain { socket: $stream, .. } => $does,
            Self::Tls($stream) => $does,
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain { socket, unread: None } => Pin::new(socket).poll_read(context, buffer),
            Self::Plain { socket, unread } => {
                let before = buffer.filled().len();
                ready!(Pin::new(socket).poll_read(context, buffer))?;
                if let Some(unexpected) = unread.take() {
                    unexpected.look_at(&buffer.filled()[before..]);
                }
                Poll::Ready(Ok(()))
            }
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, pieces))
    }

    /// Of TLS too: the pieces of one write share its records.
    fn is_write_vectored(&self) -> bool {
        each!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}

impl Stream for Connection {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Plain { socket, .. } => socket.poll_closed(context),
            Self::Tls(stream) => stream.get_mut().0.poll_closed(context),
        }
    }
}

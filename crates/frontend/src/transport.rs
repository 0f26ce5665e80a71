//! What lies between a socket and the protocol spoken on it: nothing, or encryption.

use std::{io, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{client::ClientCertificate, socket::Socket};

/// The bytes of a connection, as a protocol reads and writes them.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// A connection whose handshake, where there is one, is done.
#[derive(Debug)]
pub struct Opened<S> {
    /// What the protocol is spoken on.
    pub stream: S,
    /// Of the client, where one was asked for and is good.
    pub certificate: Option<Arc<ClientCertificate>>,
}

impl<S> Opened<S> {
    /// Of a client without a certificate.
    pub fn without_certificate(stream: S) -> Self {
        Self { stream, certificate: None }
    }
}

/// Turns an accepted socket into the stream that the protocol is spoken on.
///
/// This is where TLS comes in: a transport that holds the server's certificates performs the handshake in
/// [`accept`](Transport::accept) and has the encrypted stream as its [`Stream`](Transport::Stream). Front ends are
/// generic over it, so that a plain connection pays nothing for the possibility. A handshake runs on the
/// connection's own task: one that is slow holds up no other connection. How long it may take is for the transport to
/// limit.
pub trait Transport: Send + Sync + 'static {
    /// What the protocol reads from and writes to.
    type Stream: Stream;

    /// Opens the stream on a socket that was just accepted. An error closes the connection.
    fn accept(
        &self,
        socket: Socket,
    ) -> impl Future<Output = io::Result<Opened<Self::Stream>>> + Send;
}

/// The bytes of the socket as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Transport for Plain {
    type Stream = Socket;

    async fn accept(&self, socket: Socket) -> io::Result<Opened<Socket>> {
        Ok(Opened::without_certificate(socket))
    }
}

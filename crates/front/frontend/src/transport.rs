//! What lies between a socket and the protocol spoken on it: nothing, or encryption.

use std::{io, sync::Arc};

use crate::{
    client::ClientCertificate,
    connection::{Connection, UnexpectedTls},
    socket::Socket,
    stream::Stream,
    tls::Tls,
};

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
/// A handshake runs on the connection's own task: one that is slow holds up no other connection, and it is limited in time
/// as what opens a connection is. Front ends are generic over the transport; the program has one, [`PortTransport`].
pub trait Transport: Send + Sync + 'static {
    /// What the protocol reads from and writes to.
    type Stream: Stream;

    /// Opens the stream on a socket that was just accepted. An error closes the connection.
    fn accept(
        &self,
        socket: Socket,
    ) -> impl Future<Output = io::Result<Opened<Self::Stream>>> + Send;

    /// Memory that a connection takes for its transport, counted while it is open.
    fn connection_bytes(&self) -> usize {
        0
    }
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

/// What a TLS connection takes beside its socket, about: keys, the state of the session and a record being read.
const TLS_BYTES: usize = 16 << 10;

/// With TLS or without, as the operator asked for: one type, so that the code of a protocol exists once.
#[derive(Debug)]
pub struct PortTransport {
    tls: Option<Arc<Tls>>,
    unexpected_tls: Arc<UnexpectedTls>,
}

impl PortTransport {
    /// TLS with these certificates; `None`: without.
    pub fn new(tls: Option<Arc<Tls>>) -> Self {
        Self { tls, unexpected_tls: Arc::default() }
    }
}

impl Transport for PortTransport {
    type Stream = Connection;

    async fn accept(&self, socket: Socket) -> io::Result<Opened<Connection>> {
        let Some(tls) = &self.tls else {
            return Ok(Opened::without_certificate(Connection::plain(
                socket,
                self.unexpected_tls.clone(),
            )));
        };
        let (stream, certificate) = tls.accept(socket).await?;
        Ok(Opened { stream: Connection::Tls(Box::new(stream)), certificate })
    }

    fn connection_bytes(&self) -> usize {
        if self.tls.is_some() { TLS_BYTES } else { 0 }
    }
}

//! What lies between a socket and the protocol spoken on it: nothing, or encryption.

use std::{io, sync::Arc};

use tokio_util::either::Either;

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
    /// Where TLS is not spoken: looks at what the client sends first.
    pub unexpected_tls: Option<Arc<UnexpectedTls>>,
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

/// What a TLS connection takes beside its socket, about: keys, the state of the session and a record being read.
const TLS_BYTES: usize = 16 << 10;

/// With TLS or without, as the operator asked for: one type, so that the code of a protocol exists once.
#[derive(Debug, Default)]
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
            let unexpected_tls = Some(self.unexpected_tls.clone());
            return Ok(Opened { stream: Either::Left(socket), certificate: None, unexpected_tls });
        };
        let (stream, certificate) = tls.accept(socket).await?;
        Ok(Opened { stream: Either::Right(Box::new(stream)), certificate, unexpected_tls: None })
    }

    fn connection_bytes(&self) -> usize {
        if self.tls.is_some() { TLS_BYTES } else { 0 }
    }
}

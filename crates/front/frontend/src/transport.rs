//! The layer between a socket and its protocol: none, or encryption.

use std::{io, sync::Arc};

use tokio_util::either::Either;

use crate::{
    client::ClientCertificate,
    connection::{Connection, UnexpectedTls},
    socket::Socket,
    stream::Stream,
    tls::Tls,
};

/// A connection after its handshake, if there is one.
#[derive(Debug)]
pub struct Opened<S> {
    /// The stream for the protocol.
    pub stream: S,
    /// The client's certificate, if the server asked for one and it is valid.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// Checks the first bytes of the client on a port without TLS.
    pub unexpected_tls: Option<Arc<UnexpectedTls>>,
}

/// Turns an accepted socket into the stream for the protocol.
///
/// A handshake runs on the connection's own task, so a slow one delays no other connection. It has the time limit of a
/// preface. Front ends are generic over the transport; the program has one, [`PortTransport`].
pub trait Transport: Send + Sync + 'static {
    /// The stream that the protocol reads and writes.
    type Stream: Stream;

    /// Opens the stream on a newly accepted socket. An error closes the connection.
    fn accept(
        &self,
        socket: Socket,
    ) -> impl Future<Output = io::Result<Opened<Self::Stream>>> + Send;

    /// Returns the memory of the transport for each connection, counted while it is open.
    fn connection_bytes(&self) -> usize {
        0
    }
}

/// The approximate memory of a TLS connection besides its socket: keys, session state and a record being read.
const TLS_BYTES: usize = 16 << 10;

/// A transport with or without TLS, as configured. It is one type, so that the code of a protocol exists once.
#[derive(Debug, Default)]
pub struct PortTransport {
    tls: Option<Arc<Tls>>,
    unexpected_tls: Arc<UnexpectedTls>,
}

impl PortTransport {
    /// Returns a transport with these certificates, or without TLS for `None`.
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

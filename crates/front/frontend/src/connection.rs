//! The byte stream of a connection: the socket itself, or TLS on it.

use std::task::{Context, Poll};

use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::{
    passed_descriptors::PassedDescriptors, repeated_log::RepeatedLog, socket::Socket,
    stream::Stream, tls::HANDSHAKE,
};

/// A connection as protocols read and write it: the socket itself, or TLS on it. TLS is boxed because its state takes
/// some kilobytes, which a plain connection should not pay for.
pub type Connection = Either<Socket, Box<TlsStream<Socket>>>;

/// Logs clients that speak TLS to a port without TLS.
#[derive(Debug, Default)]
pub struct UnexpectedTls(RepeatedLog);

impl UnexpectedTls {
    pub(crate) fn look_at(&self, first: &[u8]) {
        if let [HANDSHAKE, 3, ..] = first {
            self.0.warn(|| {
                "a client speaks TLS to a port that does not: have it use http:// or an insecure channel, or start the server \
                 with --https-cert and --https-key (HTTP) or --grpc-use-ssl (gRPC)"
                    .to_owned()
            });
        }
    }
}

impl Stream for Connection {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Left(socket) => socket.poll_closed(context),
            Self::Right(stream) => stream.get_mut().0.poll_closed(context),
        }
    }

    fn accept_descriptors(&mut self) {
        // The records of TLS hide which request a descriptor came with.
        if let Self::Left(socket) = self {
            socket.accept_descriptors();
        }
    }

    fn take_descriptors(&mut self) -> PassedDescriptors {
        match self {
            Self::Left(socket) => socket.take_descriptors(),
            Self::Right(_) => PassedDescriptors::default(),
        }
    }
}

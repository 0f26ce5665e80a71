//! The TLS handshake of one connection.

use std::{io, sync::Arc};

use rustls::{pki_types::CertificateDer, server::Acceptor};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake, server::TlsStream};

use super::{
    Tls, certificate,
    failure::{self, Kind},
    wrong_protocol::{self, HANDSHAKE},
};
use crate::{client::ClientCertificate, socket::Socket};

/// A connection with TLS, and the certificate that its client proved.
pub type TlsConnection = (TlsStream<Socket>, Option<Arc<ClientCertificate>>);

impl Tls {
    /// Performs the handshake. The sweep over all connections limits its time, like that of any preface.
    pub(crate) async fn accept(&self, socket: Socket) -> io::Result<TlsConnection> {
        if let Some(first) = socket.first_byte().await?
            && first != HANDSHAKE
        {
            let error = self.failed(Kind::NoTls, "it does not use TLS, and this port does");
            wrong_protocol::answer(socket, first, self.protocol).await;
            return Err(error);
        }
        match self.handshake(socket).await {
            Ok(accepted) => Ok(accepted),
            Err(error) => Err(match failure::reason(&error) {
                Some((kind, reason)) => self.failed(kind, &reason),
                None => error,
            }),
        }
    }

    async fn handshake(&self, socket: Socket) -> io::Result<TlsConnection> {
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let stream = self.sign(start).await?.await?;
        let shown = stream.get_ref().1.peer_certificates();
        let certificate = shown.and_then(|chain| chain.first()).map(client).transpose()?;
        Ok((stream, certificate))
    }

    /// Performs the server's half of the handshake, with its signature. An RSA signature takes about a millisecond,
    /// which a thread with other clients cannot spare.
    async fn sign(
        &self,
        start: StartHandshake<Socket>,
    ) -> io::Result<tokio_rustls::Accept<Socket>> {
        let current = self.current.load_full();
        let config = current.config.clone();
        match current.signs_slowly {
            false => Ok(start.into_stream(config)),
            true => {
                let signed = self.signing.run(move || start.into_stream(config)).await;
                signed.map_err(|_| io::Error::other("too many handshakes wait for a signature"))
            }
        }
    }

    fn failed(&self, kind: Kind, reason: &str) -> io::Error {
        self.failures[kind as usize].warn(|| format!("a client's TLS handshake failed: {reason}"));
        io::Error::other(reason.to_owned())
    }
}

/// Reads the certificate of a client. The handshake has checked who signed it.
fn client(der: &CertificateDer<'_>) -> io::Result<Arc<ClientCertificate>> {
    let subject = certificate::describe(der).map_err(io::Error::other)?;
    Ok(Arc::new(ClientCertificate { subject }))
}

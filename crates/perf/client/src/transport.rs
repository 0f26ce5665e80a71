//! A connection's bytes: TCP, with or without TLS.

use std::{
    error,
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use galatea_types::{Error, Result};
use rustls::{
    ClientConfig,
    pki_types::{InvalidDnsNameError, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{Target, tls_failure};

/// Longest time to make a connection, TLS included. A server that is there answers far sooner; without a bound
/// the kernel would try for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) enum Transport {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Transport {
    /// Connects to the target, and speaks TLS where `tls` is given.
    pub(crate) async fn connect(target: &Target, tls: Option<&Arc<ClientConfig>>) -> Result<Self> {
        match timeout(CONNECT_TIMEOUT, connect(target, tls)).await {
            Ok(result) => result,
            Err(_) => Err(unreachable(target, format!("no answer for {CONNECT_TIMEOUT:?}")).into()),
        }
    }
}

async fn connect(target: &Target, tls: Option<&Arc<ClientConfig>>) -> Result<Transport> {
    let stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(|cause| unreachable(target, cause))?;
    stream.set_nodelay(true).map_err(|cause| unreachable(target, cause))?;
    let Some(config) = tls else { return Ok(Transport::Tcp(stream)) };
    let name = ServerName::try_from(target.host.clone())
        .map_err(|cause| ConnectError::ServerName { host: target.host.clone(), cause })?;
    let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
    let stream = stream.map_err(|cause| ConnectError::Tls { url: target.url(), cause })?;
    Ok(Transport::Tls(Box::new(stream)))
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error(
        "failed to connect to {url}: {cause}; is the server running, and is this its {protocol} port?"
    )]
    Unreachable {
        url: String,
        protocol: &'static str,
        #[source]
        cause: Box<dyn error::Error + Send + Sync>,
    },
    #[error("'{host}' cannot be a server's name in TLS")]
    ServerName {
        host: String,
        #[source]
        cause: InvalidDnsNameError,
    },
    #[error("failed to agree on TLS with {url}: {}", tls_failure::reason(cause))]
    Tls {
        url: String,
        #[source]
        cause: io::Error,
    },
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        let new = match error {
            ConnectError::ServerName { .. } => Error::invalid_arg,
            _ => Error::unavailable,
        };
        new(error.to_string()).with_source(error)
    }
}

fn unreachable(
    target: &Target,
    cause: impl Into<Box<dyn error::Error + Send + Sync>>,
) -> ConnectError {
    let (url, protocol, cause) = (target.url(), target.protocol.name(), cause.into());
    ConnectError::Unreachable { url, protocol, cause }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Transport::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Transport::Tcp(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

//! A connection's bytes: TCP, with or without TLS.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use galatea_types::{Error, Result};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::Target;

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
            Err(_) => Err(unreachable(target, &format!("no answer for {CONNECT_TIMEOUT:?}"))),
        }
    }
}

async fn connect(target: &Target, tls: Option<&Arc<ClientConfig>>) -> Result<Transport> {
    let stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(|error| unreachable(target, &error).with_source(error))?;
    stream.set_nodelay(true).map_err(|error| unreachable(target, &error))?;
    let Some(config) = tls else { return Ok(Transport::Tcp(stream)) };
    let name = ServerName::try_from(target.host.clone()).map_err(|_| {
        Error::invalid_arg(format!("'{}' cannot be a server's name in TLS", target.host))
    })?;
    let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
    let stream = stream.map_err(|error| tls_failed(target, &error).with_source(error))?;
    Ok(Transport::Tls(Box::new(stream)))
}

fn unreachable(target: &Target, cause: &dyn std::fmt::Display) -> Error {
    Error::unavailable(format!(
        "failed to connect to {}: {cause}; is the server running, and is this its {} port?",
        target.url(),
        target.protocol.name()
    ))
}

fn tls_failed(target: &Target, cause: &io::Error) -> Error {
    Error::unavailable(format!(
        "failed to agree on TLS with {}: {cause}; does this port speak TLS, and are the certificates right?",
        target.url()
    ))
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

//! Connections to a target: TCP or a Unix socket, with or without TLS.

use std::{
    error, io,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use galatea_types::{Error, Result};
use rustls::{
    ClientConfig,
    pki_types::{InvalidDnsNameError, ServerName},
};
use tokio::{
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::either::Either;

use crate::{Endpoint, Target, tls::client_config, tls_failure};

/// Longest time to make a connection, TLS included. A running server answers far sooner; without a bound the kernel would
/// try for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The bytes of a connection as they are on the socket.
pub(crate) type SocketStream = Either<TcpStream, UnixStream>;

/// A connection's bytes: plain, or through TLS.
pub(crate) type Transport = Either<SocketStream, Box<TlsStream<SocketStream>>>;

/// The shared settings of all connections to one target.
pub(crate) struct Route {
    pub target: Target,
    tls: Option<Arc<ClientConfig>>,
    /// Most bytes of a response over HTTP with its head, and of one message over gRPC.
    pub response_limit: usize,
}

impl Route {
    /// Reads the certificates; opens no connection.
    pub(crate) fn new(target: Target, response_limit: usize) -> Result<Rc<Self>> {
        let tls = target.tls.as_ref().map(|tls| client_config(tls, target.protocol)).transpose()?;
        Ok(Rc::new(Self { target, tls, response_limit }))
    }

    /// Returns true if descriptors can be passed to the target.
    pub(crate) fn passes_descriptors(&self) -> bool {
        matches!(self.target.endpoint, Endpoint::Unix(_)) && self.tls.is_none()
    }

    /// Connects to the target, with TLS if it has that.
    pub(crate) async fn connect(&self) -> Result<Transport> {
        match timeout(CONNECT_TIMEOUT, self.attempt()).await {
            Ok(result) => result,
            Err(_) => Err(self.unreachable(format!("no answer for {CONNECT_TIMEOUT:?}")).into()),
        }
    }

    async fn attempt(&self) -> Result<Transport> {
        let stream = match &self.target.endpoint {
            Endpoint::Tcp { host, port } => Either::Left(self.connect_tcp(host, *port).await?),
            Endpoint::Unix(path) => Either::Right(self.connect_unix(path).await?),
        };
        let Some(config) = &self.tls else { return Ok(Either::Left(stream)) };
        let host = self.target.endpoint.host().to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|cause| ConnectError::ServerName { host, cause })?;
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        let url = || self.target.url();
        let stream = stream.map_err(|cause| ConnectError::Tls { url: url(), cause })?;
        Ok(Either::Right(Box::new(stream)))
    }

    async fn connect_tcp(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let stream =
            TcpStream::connect((host, port)).await.map_err(|cause| self.unreachable(cause))?;
        stream.set_nodelay(true).map_err(|cause| self.unreachable(cause))?;
        Ok(stream)
    }

    async fn connect_unix(&self, path: &Path) -> Result<UnixStream, ConnectError> {
        UnixStream::connect(path).await.map_err(|cause| ConnectError::UnixSocket {
            path: path.to_owned(),
            protocol: self.target.protocol.name(),
            cause,
        })
    }

    fn unreachable(&self, cause: impl Into<Box<dyn error::Error + Send + Sync>>) -> ConnectError {
        let (url, protocol, cause) = (self.target.url(), self.target.protocol.name(), cause.into());
        ConnectError::Unreachable { url, protocol, cause }
    }
}

/// The reason why there is no connection.
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
    #[error(
        "failed to connect to unix:{}: {cause}; is the server running, and is this the path of its {protocol} socket?",
        path.display()
    )]
    UnixSocket {
        path: PathBuf,
        protocol: &'static str,
        #[source]
        cause: io::Error,
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

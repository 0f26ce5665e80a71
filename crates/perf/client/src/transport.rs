//! Connections to a target: TCP, with or without TLS.

use std::{error, io, rc::Rc, sync::Arc, time::Duration};

use galatea_types::{Error, Result};
use rustls::{
    ClientConfig,
    pki_types::{InvalidDnsNameError, ServerName},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::either::Either;

use crate::{Target, tls::client_config, tls_failure};

/// Longest time to make a connection, TLS included. A running server answers far sooner; without a bound the kernel would
/// try for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection's bytes: plain, or through TLS.
pub(crate) type Transport = Either<TcpStream, Box<TlsStream<TcpStream>>>;

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

    /// Connects to the target, with TLS if it has that.
    pub(crate) async fn connect(&self) -> Result<Transport> {
        match timeout(CONNECT_TIMEOUT, self.attempt()).await {
            Ok(result) => result,
            Err(_) => Err(self.unreachable(format!("no answer for {CONNECT_TIMEOUT:?}")).into()),
        }
    }

    async fn attempt(&self) -> Result<Transport> {
        let Target { host, port, .. } = &self.target;
        let stream = TcpStream::connect((host.as_str(), *port))
            .await
            .map_err(|cause| self.unreachable(cause))?;
        stream.set_nodelay(true).map_err(|cause| self.unreachable(cause))?;
        let Some(config) = &self.tls else { return Ok(Either::Left(stream)) };
        let name = ServerName::try_from(host.clone())
            .map_err(|cause| ConnectError::ServerName { host: host.clone(), cause })?;
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        let url = || self.target.url();
        let stream = stream.map_err(|cause| ConnectError::Tls { url: url(), cause })?;
        Ok(Either::Right(Box::new(stream)))
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

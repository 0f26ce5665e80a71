//! How a connection is made: directly, or through the proxy that the usual variables name.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_runtimes::Environment;
use http::Uri;
use hyper_util::client::{
    legacy::connect::{HttpConnector, proxy::Tunnel},
    proxy::matcher::Matcher,
};
use tower_service::Service;

/// What the client makes of a socket.
type Connection = <HttpConnector as Service<Uri>>::Response;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to hosts. Encrypted connections go through a proxy where there is one for them (`HTTPS_PROXY`, `ALL_PROXY`,
/// `NO_PROXY`); plain ones, which lead to this machine or the own network, never do.
#[derive(Clone)]
pub struct Route {
    tcp: HttpConnector,
    proxies: Arc<Matcher>,
}

impl Route {
    pub fn new(tcp: HttpConnector, environment: &Environment) -> Self {
        let of = |names: [&str; 2]| {
            names.iter().find_map(|name| environment.text(name)).unwrap_or_default()
        };
        let proxies = Matcher::builder()
            .https(of(["https_proxy", "HTTPS_PROXY"]))
            .all(of(["all_proxy", "ALL_PROXY"]))
            .no(of(["no_proxy", "NO_PROXY"]))
            .build();
        Self { tcp, proxies: Arc::new(proxies) }
    }

    async fn connect(mut self, to: Uri) -> Result<Connection, BoxError> {
        let proxy = match to.scheme_str() {
            Some("https") => self.proxies.intercept(&to),
            _ => None,
        };
        let Some(proxy) = proxy else { return Ok(self.tcp.call(to).await?) };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp);
        if let Some(secret) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(secret.clone());
        }
        Ok(tunnel.call(to).await?)
    }
}

/// Without the proxies: their addresses may hold a password.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Route")
    }
}

impl Service<Uri> for Route {
    type Response = Connection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        Box::pin(self.clone().connect(to))
    }
}

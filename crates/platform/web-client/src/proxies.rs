//! Makes connections, directly or through a proxy.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_types::Environment;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::{
    legacy::connect::{HttpConnector, proxy::Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use tower_service::Service;

use crate::address::{is_plain, is_this_machine};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The proxies of connections. Connections to this machine use none.
#[derive(Clone)]
pub struct Proxies {
    matcher: Arc<Matcher>,
    /// True if connections without encryption use a proxy too.
    serve_plain: bool,
}

impl Proxies {
    /// Reads the usual variables for encrypted connections: `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`. Plain connections stay
    /// in the own network and use none.
    pub fn of(environment: &Environment) -> Self {
        Self { serve_plain: false, ..Self::for_all(environment) }
    }

    /// Reads the usual variables for all connections: `HTTP_PROXY` too.
    pub fn for_all(environment: &Environment) -> Self {
        let of = |name: &str| {
            let names = [name.to_owned(), name.to_ascii_uppercase()];
            names.iter().find_map(|name| environment.text(name)).unwrap_or_default()
        };
        let matcher = Matcher::builder()
            .http(of("http_proxy"))
            .https(of("https_proxy"))
            .all(of("all_proxy"))
            .no(of("no_proxy"))
            .build();
        Self { matcher: Arc::new(matcher), serve_plain: true }
    }

    /// Makes one proxy for all connections. Returns `None` if the address is not that of a proxy.
    pub fn only(address: &str) -> Option<Self> {
        let matcher = Arc::new(Matcher::builder().all(address).build());
        let proxies = Self { matcher, serve_plain: true };
        proxies.place_for(&Uri::from_static("https://h/")).is_some().then_some(proxies)
    }

    /// Returns host and port of the proxy for an address.
    pub fn place_for(&self, to: &Uri) -> Option<String> {
        let proxy = self.intercept(to)?;
        let (host, port) = (proxy.uri().host()?, proxy.uri().port_u16());
        Some(format!("{host}:{}", port.unwrap_or(if is_plain(proxy.uri()) { 80 } else { 443 })))
    }

    fn intercept(&self, to: &Uri) -> Option<Intercept> {
        let may_serve = (self.serve_plain || !is_plain(to)) && !is_this_machine(to);
        may_serve.then(|| self.matcher.intercept(to)).flatten()
    }
}

/// Omits the proxies: their addresses may contain a password.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxies")
    }
}

#[derive(Clone)]
pub(crate) struct Route {
    pub tcp: HttpConnector,
    /// Connects to proxies, which may want encryption of their own.
    pub to_proxy: HttpsConnector<HttpConnector>,
    pub proxies: Proxies,
}

type Connection = MaybeHttpsStream<<HttpConnector as Service<Uri>>::Response>;

impl Route {
    async fn connect(mut self, to: Uri) -> Result<Connection, BoxError> {
        let Some(proxy) = self.proxies.intercept(&to) else {
            return Ok(MaybeHttpsStream::Http(self.tcp.call(to).await?));
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy);
        if let Some(secret) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(secret.clone());
        }
        Ok(tunnel.call(to).await?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_use_the_configured_proxy() {
        let environment = Environment::of([
            ("HTTP_PROXY", "plain.example"),
            ("https_proxy", "http://me:secret@proxy.example:8080"),
            ("NO_PROXY", "near.example"),
        ]);
        let place = |proxies: &Proxies, to: &str| proxies.place_for(&to.parse().expect("valid"));
        for proxies in [Proxies::of(&environment), Proxies::for_all(&environment)] {
            assert_eq!(place(&proxies, "https://h/").as_deref(), Some("proxy.example:8080"));
            for direct in ["https://near.example/", "https://a.near.example", "https://127.0.0.1/"]
            {
                assert_eq!(place(&proxies, direct), None, "{direct}");
            }
            let plain = proxies.serve_plain.then_some("plain.example:80");
            assert_eq!(place(&proxies, "http://h/").as_deref(), plain);
        }
        let only = Proxies::only("https://proxy").expect("a proxy");
        assert_eq!(place(&only, "http://h/").as_deref(), Some("proxy:443"));
        assert_eq!(place(&only, "http://localhost/"), None);
        assert!(Proxies::only("ftp://proxy").is_none());
        assert_eq!(place(&Proxies::for_all(&Environment::default()), "https://h/"), None);
    }
}

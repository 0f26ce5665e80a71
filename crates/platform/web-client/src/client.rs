//! The HTTP client: one pool of connections, rustls, time limits, proxies.

use std::time::Duration;

use bytes::Bytes;
use galatea_types::Environment;
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use crate::{
    body::HttpBody,
    failure::{HttpFailure, Problem, broken, innermost},
    proxies::{Proxies, Route},
    roots::{self, Roots},
};

/// Connections per host that are kept for the next request.
const IDLE_PER_HOST: usize = 16;
/// The time without a byte from the server after which a connection of HTTP/2 with open requests is tested. Such a connection
/// serves all requests, and without a test a dead one would until the system gives it up, after a quarter of an hour.
const TESTED_AFTER: Duration = Duration::from_secs(4);
/// The longest wait for the answer to that test. Without one, the next request makes a connection.
const TEST: Duration = Duration::from_secs(4);

const AGENT: HeaderValue = HeaderValue::from_static(concat!("galatea/", env!("CARGO_PKG_VERSION")));

/// The settings for access to servers.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The proxies that connections go through.
    pub proxies: Proxies,
    /// The authorities that encrypted connections trust.
    pub roots: Roots,
    /// Time limits of servers.
    pub limits: TimeLimits,
    /// The version of HTTP.
    pub version: HttpVersion,
}

/// The version of HTTP that a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 alone, also without encryption.
    Http2,
}

/// Time limits of servers.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// Limit until a connection is made.
    pub connect: Duration,
    /// Limit until the head of a response is received.
    pub head: Duration,
    /// Period in which a body must bring at least 16 KiB.
    pub body: Duration,
}

impl ClientSettings {
    /// Returns the settings of this machine, with the proxies that the usual variables name.
    pub fn of(environment: &Environment) -> Self {
        let connect = Duration::from_secs(5);
        let (head, body) = (Duration::from_secs(30), Duration::from_secs(30));
        let limits = TimeLimits { connect, head, body };
        let (roots, version) = (Roots::Machine, HttpVersion::default());
        Self { proxies: Proxies::of(environment), roots, limits, version }
    }
}

/// An HTTP client. Clones are cheap and share their connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<HttpsConnector<Route>, Full<Bytes>>,
    limits: TimeLimits,
}

impl HttpClient {
    /// # Errors
    /// When TLS cannot be used.
    pub fn new(settings: &ClientSettings) -> Result<Self, HttpFailure> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(settings.limits.connect));
        tcp.set_nodelay(true);
        let tls = roots::tls(&settings.roots)?;
        let encrypted =
            || HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        let to_proxy = encrypted().enable_http1().wrap_connector(tcp.clone());
        let route = Route { tcp, to_proxy, proxies: settings.proxies.clone() };
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(TESTED_AFTER)
            .http2_keep_alive_timeout(TEST)
            .http2_only(settings.version == HttpVersion::Http2)
            .build(match settings.version {
                HttpVersion::Http1 => encrypted().enable_http1().wrap_connector(route),
                HttpVersion::Http2 => encrypted().enable_http2().wrap_connector(route),
            });
        Ok(Self { client, limits: settings.limits })
    }

    /// Returns the response to one request, whatever its status. Redirects are not followed. `most`: most bytes of its body.
    ///
    /// # Errors
    /// When no head of a response comes in time.
    pub async fn send(
        &self,
        mut request: Request<Bytes>,
        most: u64,
    ) -> Result<Response<HttpBody>, HttpFailure> {
        request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
        let answer = self.client.request(request.map(Full::new));
        let limit = self.limits.connect + self.limits.head;
        match tokio::time::timeout(limit, answer).await {
            Err(_) => {
                let text = format!("the server sent no response for {} s", limit.as_secs());
                Err(HttpFailure::new(Problem::TooSlow, text))
            }
            Ok(Err(error)) if error.is_connect() => {
                let text = format!("cannot connect: {}", innermost(&error));
                Err(HttpFailure::new(Problem::Connect, text))
            }
            Ok(Err(error)) => Err(broken(&error)),
            Ok(Ok(response)) => {
                Ok(response.map(|body| HttpBody::new(body, most, self.limits.body)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Time moves on its own while everything waits.
    #[tokio::test(start_paused = true)]
    async fn a_dead_connection_of_http2_does_not_serve_the_next_request() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}/", server.local_addr().expect("an address"));
        let settings = ClientSettings {
            version: HttpVersion::Http2,
            ..ClientSettings::of(&Environment::default())
        };
        let client = HttpClient::new(&settings).expect("a client");
        let mut connections = Vec::new();
        for _ in 0..2 {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = address.parse().expect("good");
            let sending = client.clone();
            let answer = tokio::spawn(async move { sending.send(request, 1).await.map(drop) });
            // It is kept open, and nothing on it is read or answered.
            connections.push(server.accept().await.expect("a connection"));
            let failure = answer.await.expect("ended").expect_err("no answer");
            assert!(failure.to_string().contains("connection broke"), "{failure}");
        }
    }
}

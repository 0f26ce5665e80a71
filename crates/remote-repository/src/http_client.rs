//! The HTTP client under everything that this crate fetches: one pool of connections, rustls, time limits, proxies.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use galatea_runtimes::Environment;
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{Instant, Sleep};

use crate::{error::RemoteError, proxy::Route, tls};

/// Until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Until the head of a response is there.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A body that brings less than [`LEAST_BYTES`] in this time is given up.
const BODY_PERIOD: Duration = Duration::from_secs(30);

/// See [`BODY_PERIOD`]: so that a server that sends single bytes cannot hold a download up for ever.
const LEAST_BYTES: u64 = 16 << 10;

/// Connections that are kept for the next request.
const IDLE_PER_HOST: usize = 16;

/// Why there is no response, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum HttpFailure {
    /// No connection could be made.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server was too slow.
    #[error("the server sent {what} for {} s", limit.as_secs())]
    TooSlow {
        /// What it sent.
        what: &'static str,
        /// For how long.
        limit: Duration,
    },
    /// The connection ended early, or what came is no HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The body is longer than any that is expected.
    #[error("the response is longer than {0} bytes")]
    TooLong(u64),
    /// The address wants no encryption, which this use of it must have.
    #[error("plain HTTP is refused for '{0}'")]
    NotEncrypted(String),
}

/// Cheap to clone; all clones share their connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<HttpsConnector<Route>, Full<Bytes>>,
}

impl HttpClient {
    /// # Errors
    /// When the certificates that the environment names cannot be read.
    pub fn new(environment: &Environment) -> Result<Self, RemoteError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(environment)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Route::new(tcp, environment));
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client })
    }

    /// The response to one request, whatever its status. Redirects are not followed. `most` is how long its body may be.
    ///
    /// # Errors
    /// When no head of a response comes in time.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        most: u64,
    ) -> Result<Response<HttpBody>, HttpFailure> {
        let answer = self.client.request(request.map(Full::new));
        let limit = CONNECT_TIMEOUT + HEAD_TIMEOUT;
        match tokio::time::timeout(limit, answer).await {
            Err(_) => Err(HttpFailure::TooSlow { what: "no response", limit }),
            Ok(Err(error)) if error.is_connect() => Err(HttpFailure::Connect(innermost(&error))),
            Ok(Err(error)) => Err(HttpFailure::Broken(innermost(&error))),
            Ok(Ok(response)) => Ok(response.map(|body| HttpBody::new(body, most))),
        }
    }
}

/// What is at the bottom of an error says what happened; the rest is where.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

/// The body of a response: it ends with an error when it is too slow or too long.
#[derive(Debug)]
pub struct HttpBody {
    inner: Incoming,
    period: Pin<Box<Sleep>>,
    /// Bytes that came in this period.
    came: u64,
    left: u64,
    most: u64,
}

impl HttpBody {
    #[expect(
        clippy::disallowed_methods,
        reason = "the time of a body is tokio's time, which tests can move"
    )]
    fn new(inner: Incoming, most: u64) -> Self {
        let period = Box::pin(tokio::time::sleep(BODY_PERIOD));
        Self { inner, period, came: 0, left: most, most }
    }

    /// Counts what came.
    fn take(&mut self, frame: &Frame<Bytes>) -> Result<(), HttpFailure> {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        self.came += length;
        match self.left.checked_sub(length) {
            Some(left) => self.left = left,
            None => return Err(HttpFailure::TooLong(self.most)),
        }
        Ok(())
    }

    /// Ready when a period is over in which too little came.
    fn poll_too_slow(&mut self, context: &mut Context<'_>) -> Poll<HttpFailure> {
        loop {
            ready!(self.period.as_mut().poll(context));
            if self.came < LEAST_BYTES {
                let what = "less of the body than 16 KiB";
                return Poll::Ready(HttpFailure::TooSlow { what, limit: BODY_PERIOD });
            }
            self.came = 0;
            self.period.as_mut().reset(Instant::now() + BODY_PERIOD);
        }
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = HttpFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpFailure>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.take(&frame).map(|()| frame))),
            Poll::Ready(Some(Err(error))) => {
                Poll::Ready(Some(Err(HttpFailure::Broken(innermost(&error)))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.poll_too_slow(context).map(|failure| Some(Err(failure))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Whether an address wants no encryption.
pub(crate) fn is_plain(uri: &Uri) -> bool {
    uri.scheme_str() == Some("http")
}

//! Starts the HTTP front end and the metrics endpoint.

use std::{io, sync::Arc, thread};

use galatea_engine::Engine;
use galatea_frontend::{
    Activity, Answer, Call, Client, Closing, Framing, FrontEnd, FrontEndOptions, InFlight,
    Listener, Peer, PortTransport, Protocol, Stream,
};
use galatea_http1::HeadError;
use galatea_types::Code;
use http::StatusCode;

use crate::{
    cloud::CloudFrontEnd,
    connection,
    io::{ConnectionError, ConnectionIo},
    options::HttpOptions,
    service::{Content, Service},
    state::PROTOCOL,
};

/// Serves inference and management on `listener` with its own threads until [`FrontEnd::shut_down`].
///
/// While it drains it accepts no connections, and closes each open one with the response to its next request. Once
/// requests are refused they get 503, except health checks.
pub fn serve(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &HttpOptions,
) -> io::Result<FrontEnd> {
    start("http", listener.into(), engine, options, Content::Inference)
}

/// Serves a cloud platform on `listener` as [`serve`] serves clients, but without TLS: the platform connects from the
/// same machine, and has no certificate of ours.
pub fn serve_cloud(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &HttpOptions,
    platform: CloudFrontEnd,
) -> io::Result<FrontEnd> {
    start("cloud", listener.into(), engine, options, Content::Cloud(platform))
}

/// Serves the metrics on `listener` with one thread until [`FrontEnd::shut_down`]. A few of the server's connections
/// are reserved for it.
pub fn serve_metrics(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &HttpOptions,
) -> io::Result<FrontEnd> {
    start("metrics", listener.into(), engine, options, Content::Metrics)
}

fn start(
    name: &'static str,
    listener: Listener,
    engine: &Arc<Engine>,
    options: &HttpOptions,
    content: Content,
) -> io::Result<FrontEnd> {
    let most = thread::available_parallelism().map_or(1, usize::from);
    let of_clients = options.thread_count.clamp(1, most);
    let (thread_count, tls) = match content {
        Content::Inference => (of_clients, options.tls.clone()),
        Content::Cloud(_) => (of_clients, None),
        Content::Metrics => (1, options.metrics_tls.clone()),
    };
    let threads = FrontEndOptions {
        name,
        thread_count,
        accepts_while_draining: false,
        limits: options.limits.clone(),
        uses_reserve: matches!(content, Content::Metrics),
    };
    let service = Service::new(content, engine, options);
    FrontEnd::start(listener, PortTransport::new(tls), service, threads)
}

impl Protocol for Service {
    type Error = ConnectionError;

    fn in_flight(&self) -> &Arc<InFlight> {
        &self.state.in_flight
    }

    fn framing(&self) -> Framing {
        Framing::Sequential
    }

    async fn serve(
        &self,
        mut stream: impl Stream,
        client: Client,
        activity: Arc<Activity>,
        closing: Closing,
    ) -> Result<(), ConnectionError> {
        let accepts_descriptors = self.accepts_descriptors(client.peer);
        if accepts_descriptors {
            stream.accept_descriptors();
        }
        let io = ConnectionIo::new(Box::new(stream), accepts_descriptors);
        let shared = self.state.connection(io, client, closing.clone());
        let served = connection::serve(self, &shared, &activity, closing).await;
        if let Err(ConnectionError::Head(error)) = &served {
            self.tell_malformed(shared.client.peer, *error);
        }
        served
    }
}

impl Service {
    /// Reports a request whose head could not be read. The reader has answered it.
    fn tell_malformed(&self, peer: Peer, error: HeadError) {
        let call = Call { protocol: PROTOCOL, method: "", path: "" };
        let status = error.status().unwrap_or(StatusCode::BAD_REQUEST);
        let reason = error.to_string();
        let failure = Some((Code::InvalidArg, &*reason));
        let answer = Answer { status: status.as_u16(), bytes: 0, is_good: false, failure };
        self.state.options.requests.begin(peer, &call, None).finish(|| call, &answer);
    }
}

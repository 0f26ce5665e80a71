//! Starting the HTTP front end and the metrics endpoint.

use std::{convert::Infallible, io, sync::Arc, thread};

use galatea_engine::Engine;
use galatea_frontend::{
    Activity, Answer, Call, Client, Closing, Framing, FrontEnd, FrontEndOptions, InFlight,
    Listener, Peer, PortTransport, Protocol, Stream,
};
use galatea_types::Code;
use http::StatusCode;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;

use crate::{
    CloudFrontEnd, HttpOptions,
    collector::READ_BUFFER,
    received::PROTOCOL,
    service::{Content, Service},
    wire::Seen,
};

/// Serves inference and management on `listener` from threads of its own until [`FrontEnd::shut_down`].
///
/// While it drains no connections are accepted, and each open one is closed with the response to its next request. Once
/// requests are refused, they are answered 503, the health checks excepted.
pub fn serve(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &HttpOptions,
) -> io::Result<FrontEnd> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = FrontEndOptions {
        name: "http",
        thread_count: options.thread_count.clamp(1, cores),
        accepts_while_draining: false,
        limits: options.limits.clone(),
        uses_reserve: false,
    };
    let service = Service::new(Content::Inference, engine, options);
    FrontEnd::start(listener.into(), PortTransport::new(options.tls.clone()), service, threads)
}

/// Serves a cloud platform on `listener` as [`serve`] serves clients, without TLS: the platform calls from the same machine,
/// and knows no certificate of ours.
pub fn serve_cloud(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &HttpOptions,
    platform: CloudFrontEnd,
) -> io::Result<FrontEnd> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = FrontEndOptions {
        name: "cloud",
        thread_count: options.thread_count.clamp(1, cores),
        accepts_while_draining: false,
        limits: options.limits.clone(),
        uses_reserve: false,
    };
    let service = Service::new(Content::Cloud(platform), engine, options);
    FrontEnd::start(listener.into(), PortTransport::new(None), service, threads)
}

/// Serves the metrics on `listener` from a thread of its own until [`FrontEnd::shut_down`]. A few of the server's
/// connections are kept for it.
pub fn serve_metrics(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &HttpOptions,
) -> io::Result<FrontEnd> {
    let threads = FrontEndOptions {
        name: "metrics",
        thread_count: 1,
        accepts_while_draining: false,
        limits: options.limits.clone(),
        uses_reserve: true,
    };
    let service = Service::new(Content::Metrics, engine, options);
    FrontEnd::start(
        listener.into(),
        PortTransport::new(options.metrics_tls.clone()),
        service,
        threads,
    )
}

impl Protocol for Service {
    type Error = hyper::Error;

    fn in_flight(&self) -> &Arc<InFlight> {
        &self.state.in_flight
    }

    fn framing(&self) -> Framing {
        Framing::Sequential
    }

    async fn serve(
        &self,
        stream: impl Stream,
        client: Client,
        activity: Arc<Activity>,
        closing: Closing,
    ) -> Result<(), hyper::Error> {
        let shared = self.state.connection(client, closing.clone());
        let stream = Seen { stream, wire: shared.wire.clone() };
        let respond = service_fn(|request| {
            let (call, shared) = (activity.begin_call(), &shared);
            async move { Ok::<_, Infallible>(self.call(request, call, shared).await) }
        });
        let connection = builder().serve_connection(TokioIo::new(stream), respond);
        let served = closing.serve(connection, http1::Connection::graceful_shutdown).await;
        if let Some(error) = served.as_ref().err().filter(|error| error.is_parse()) {
            self.tell_malformed(shared.client.peer, error);
        }
        served
    }
}

impl Service {
    /// A request whose head could not be read: what reads it has answered it.
    fn tell_malformed(&self, peer: Peer, error: &hyper::Error) {
        let call = Call { protocol: PROTOCOL, method: "", path: "" };
        let status = match error.is_parse_too_large() {
            true => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            false => StatusCode::BAD_REQUEST,
        };
        let reason = error.to_string();
        let failure = Some((Code::InvalidArg, &*reason));
        let answer = Answer { status: status.as_u16(), bytes: 0, is_good: false, failure };
        self.state.options.requests.begin(peer, &call, None).finish(|| call, &answer);
    }
}

/// Longest head of a request, and most headers in it; more is answered 431.
const MAX_HEAD: usize = 32 << 10;
const MAX_HEADERS: usize = 100;

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Header names as Triton writes them, and no date, which it does not send. Not `pipeline_flush`: it copies
    // every body into the write buffer.
    builder.title_case_headers(true).auto_date_header(false);
    // What a client may make the server hold before its request is known. The buffer is also what an idle connection
    // keeps of its last body.
    builder.max_header_size(MAX_HEAD).max_headers(MAX_HEADERS).max_buf_size(READ_BUFFER);
    builder
}

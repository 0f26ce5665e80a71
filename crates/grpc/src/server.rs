//! Starting the gRPC front end.

use std::{io, sync::Arc};

use galatea_engine::Engine;
use galatea_frontend::{
    Activity, Client, Closing, Framing, FrontEnd, FrontEndOptions, InFlight, Listener,
    PortTransport, Protocol, Stream,
};
use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::TokioIo;

use crate::{
    GrpcOptions,
    age::ConnectionAge,
    call_task::CallExecutor,
    connection,
    dispatch::Dispatcher,
    guard::Guarded,
    pings::{PingRules, Pings},
    unread::Unread,
};

/// Serves gRPC on `listener` from threads of its own until [`FrontEnd::shut_down`].
///
/// Once requests are refused, every call is answered UNAVAILABLE, those on new connections too.
pub fn serve(
    listener: impl Into<Listener>,
    engine: &Arc<Engine>,
    options: &GrpcOptions,
) -> io::Result<FrontEnd> {
    let threads = FrontEndOptions {
        name: "grpc",
        thread_count: options.thread_count,
        accepts_while_draining: true,
        limits: options.limits.clone(),
        uses_reserve: false,
    };
    let service = GrpcService {
        builder: connection::builder(options),
        age: ConnectionAge::of(options),
        pings: options.pings,
        dispatcher: Dispatcher::new(engine, options),
    };
    FrontEnd::start(listener.into(), PortTransport::new(options.tls.clone()), service, threads)
}

/// Bytes that a connection opens with: the preface of HTTP/2, and the head of the settings behind it.
const OPENING: usize = 24 + 9;

/// What is served on every connection.
struct GrpcService {
    builder: http2::Builder<CallExecutor>,
    age: Option<ConnectionAge>,
    pings: PingRules,
    dispatcher: Dispatcher,
}

impl Protocol for GrpcService {
    type Error = hyper::Error;

    fn in_flight(&self) -> &Arc<InFlight> {
        self.dispatcher.in_flight()
    }

    fn framing(&self) -> Framing {
        Framing::Multiplexed { opening: OPENING }
    }

    async fn serve(
        &self,
        stream: impl Stream,
        client: Client,
        activity: Arc<Activity>,
        closing: Closing,
    ) -> Result<(), hyper::Error> {
        let dispatcher = self.dispatcher.clone();
        let account = dispatcher.client_limits().connection();
        let memory = self.dispatcher.memory();
        let unread = Unread::new(connection::MOST_UNREAD, memory);
        let stream =
            Guarded::new(stream, Pings::new(self.pings), activity.clone(), unread.clone(), memory);
        let answer = service_fn(move |request| {
            let call = activity.begin_call();
            dispatcher.clone().answer(
                request,
                (call, client.clone(), account.clone()),
                unread.reader(),
            )
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), answer);
        let shut_down = http2::Connection::graceful_shutdown;
        match self.age {
            None => closing.serve(connection, shut_down).await,
            Some(age) => age.serve(connection, closing, shut_down).await,
        }
    }
}

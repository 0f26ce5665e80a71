//! Starts the gRPC front end.

use std::{io, pin::Pin, sync::Arc};

use crate::{
    GrpcOptions,
    call::Call,
    connection::{self, Connection, ConnectionError},
    connection_age::ConnectionAge,
    dispatch::{ConnectionContext, Dispatcher},
    guarded_stream::GuardedStream,
    keep_alive::KeepAliveRules,
    pings::{PingRules, Pings},
    unread_bytes::UnreadBytes,
};
use galatea_engine::Engine;
use galatea_frontend::{
    Activity, Client, Closing, Framing, FrontEnd, FrontEndOptions, InFlight, Listener,
    PortTransport, Protocol, Stream,
};

/// Serves gRPC on `listener` with its own threads until [`FrontEnd::shut_down`].
///
/// Once requests are refused, every call is answered with UNAVAILABLE, on new connections too.
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
        http2: connection::http2(),
        keep_alive: KeepAliveRules {
            interval: options.keepalive_time,
            timeout: options.keepalive_timeout,
        },
        age: ConnectionAge::of(options),
        pings: options.pings,
        dispatcher: Arc::new(Dispatcher::new(engine, options)),
    };
    FrontEnd::start(listener.into(), PortTransport::new(options.tls.clone()), service, threads)
}

/// The bytes that open a connection: the preface of HTTP/2 and the head of the settings frame after it.
const OPENING: usize = 24 + 9;

struct GrpcService {
    http2: h2::server::Builder,
    keep_alive: KeepAliveRules,
    age: Option<ConnectionAge>,
    pings: PingRules,
    dispatcher: Arc<Dispatcher>,
}

impl Protocol for GrpcService {
    type Error = ConnectionError;

    fn in_flight(&self) -> &Arc<InFlight> {
        &self.dispatcher.state.in_flight
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
    ) -> Result<(), ConnectionError> {
        let options = &self.dispatcher.state.options;
        let memory = &options.memory;
        let unread = UnreadBytes::new(connection::MOST_UNREAD, memory);
        let pings = Pings::new(self.pings);
        let stream = GuardedStream::new(stream, pings, activity.clone(), unread.clone(), memory)
            .for_peer(client.peer);
        let dispatcher = self.dispatcher.clone();
        let account = options.client_limits.connection();
        let context =
            ConnectionContext { dispatcher, client, account, activity, unread: unread.clone() };
        let context = Arc::new(context);
        let answer = move |request, respond| Call::new(&context, request, respond);
        let connection = Connection::new(stream, &self.http2, self.keep_alive, unread, answer);
        let shut_down =
            |connection: Pin<&mut Connection<_, _, _>>| connection.get_mut().shut_down();
        match self.age {
            None => closing.serve(connection, shut_down).await,
            Some(age) => age.serve(connection, closing, shut_down).await,
        }
    }
}

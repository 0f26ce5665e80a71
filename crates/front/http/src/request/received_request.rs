//! A received request, with the resources that it holds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_engine::call::{FoundModel, InferCall};
use galatea_frontend::{
    Activity, Call, Caller, ClientLimitError, Exchange, HeaderForwarding, PassedDescriptors,
};
use galatea_http1::RequestHead;
use galatea_types::{
    ClientShare, Identity, InferRequest, LockExt, MemoryReservation, Protocol, Result, TraceContext,
};

use crate::{
    io::body_error::{BodyError, SizeLimit},
    request::{
        body::{self, BodyMemory},
        route::ModelPath,
    },
    state::{Connection, PROTOCOL, ServerState},
};

/// Returns the protocol, method and path of a request, for the log.
pub(crate) fn call_of(head: &RequestHead) -> Call<'_> {
    Call { protocol: PROTOCOL, method: head.method().as_str(), path: head.path() }
}

/// The headers by which a client, or Envoy for its clients, states how many milliseconds it waits for the answer.
const TIMEOUTS: [&str; 2] = ["X-Request-Timeout-Ms", "X-Envoy-Expected-Rq-Timeout-Ms"];

/// Reads a number of milliseconds; `None` for anything else.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_number)?;
    text.parse().ok().map(Duration::from_millis)
}

/// Returns the client's span.
fn client_span(head: &RequestHead) -> Option<TraceContext> {
    let all = |name| head.get_all(name);
    TraceContext::from_headers(all(TraceContext::HEADER), all(TraceContext::STATE_HEADER))
}

pub(crate) struct ReceivedRequest<'c> {
    /// The sender, by the head of the request.
    pub sender: Sender<'c>,
    activity: &'c Arc<Activity>,
    /// The state that the requests of its connection share.
    pub connection: &'c Arc<Connection>,
    is_last: bool,
    pub exchange: Exchange,
    /// The reservation of the body in the server's budget.
    pub memory: MemoryReservation,
}

pub(crate) struct Sender<'c> {
    pub head: &'c RequestHead,
    /// Anybody, until authentication has set it.
    pub caller: Caller,
    /// The share that the request takes of its client's limits.
    share: Option<Box<ClientShare>>,
    forwarding: &'c HeaderForwarding,
}

/// The service has checked the sender's permission for the route and taken its share before it read any of the body.
impl galatea_types::Sender for Sender<'_> {
    const PROTOCOL: Protocol = Protocol::Http;

    fn check(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn identity(&self) -> Option<&Arc<Identity>> {
        self.caller.identity()
    }

    /// The time that a header states counts from now, when the body has arrived.
    fn deadline(&self) -> Option<Instant> {
        let stated = |name| self.head.get(name).and_then(milliseconds);
        Instant::now().checked_add(TIMEOUTS.into_iter().find_map(stated)?)
    }

    fn take_share(&mut self, _: usize) -> Result<Option<Box<ClientShare>>> {
        Ok(self.share.take())
    }

    fn forward_headers(&self, request: &mut InferRequest) -> Result<()> {
        self.forwarding.forward(self.head.headers(), request)
    }
}

impl<'c> ReceivedRequest<'c> {
    pub fn new(
        head: &'c RequestHead,
        activity: &'c Arc<Activity>,
        connection: &'c Arc<Connection>,
        state: &'c ServerState,
    ) -> Self {
        let (peer, options) = (connection.client.peer, &state.options);
        let (caller, forwarding) = (Caller::default(), &options.header_forwarding);
        Self {
            exchange: options.requests.begin(peer, &call_of(head), client_span(head)),
            sender: Sender { head, caller, share: None, forwarding },
            activity,
            connection,
            is_last: false,
            memory: options.memory.reservation(),
        }
    }

    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns the length of the body, if the client stated it.
    pub fn content_length(&self) -> Option<u64> {
        self.sender.head.framing().length()
    }

    /// Returns the whole body, of at most `limit` bytes; see [`body::read`].
    pub async fn body(
        &mut self,
        header_length: Option<usize>,
        limit: SizeLimit,
    ) -> Result<bytes::Bytes, BodyError> {
        let framing = self.sender.head.framing();
        let _receiving = self.activity.receive();
        let share = match (self.sender.caller.account(), &mut self.sender.share) {
            (Some(account), Some(share)) if framing.length().is_none() => {
                Some((account, share.as_mut()))
            }
            _ => None,
        };
        let taken = BodyMemory { memory: &mut self.memory, share };
        let read = body::read(self.connection, framing, header_length, limit, taken).await;
        self.exchange.record_received(read.as_ref().map_or(0, bytes::Bytes::len));
        self.is_last = matches!(read, Err(BodyError::TooManyChunks(_)));
        read
    }

    /// Returns the descriptors that the client passed with the request, whose body was read.
    pub fn take_descriptors(&self) -> PassedDescriptors {
        self.connection.io.lock_unpoisoned().take_descriptors()
    }

    /// Takes the request's share of its client's limits, as far as its head states it.
    pub fn begin_share(&mut self) -> Result<(), ClientLimitError> {
        let bytes = self.content_length().unwrap_or_default();
        self.sender.share =
            self.sender.caller.begin(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(())
    }

    pub fn find_model(&mut self, state: &ServerState, path: ModelPath<'_>) -> Result<FoundModel> {
        let (sender, exchange) = (&self.sender, &mut self.exchange);
        FoundModel::find(&state.engine, path.name, || path.version(), sender, exchange)
    }

    /// Admits the request, whose body was read, with `decoded` bytes in addition. From then on the call holds the
    /// memory of the body.
    pub fn admit(&mut self, found: FoundModel, decoded: usize) -> Result<InferCall> {
        found.admit(&mut self.sender, std::mem::take(&mut self.memory), decoded)
    }
}

//! A request as it came in, with what is held for it.

use std::sync::Arc;

use galatea_frontend::{Call, CallGuard, Caller, ClientLimitError, Exchange};
use galatea_types::{ClientShare, MemoryReservation, RequestContext, TraceContext};
use http::{HeaderMap, HeaderName, Request, header::EXPECT};
use hyper::body::{Body as _, Incoming};

use crate::{
    body_error::{BodyError, SizeLimit},
    request_body,
    state::{Connection, ServerState},
    wire::{RequestHeaders, SentHeaders},
};

const TRACEPARENT: HeaderName = HeaderName::from_static(TraceContext::HEADER);

/// What a request asks for, as the log calls it.
pub(crate) fn call_of<B>(request: &Request<B>) -> Call<'_> {
    Call { protocol: PROTOCOL, method: request.method().as_str(), path: request.uri().path() }
}

/// The name of the protocol in the log.
pub(crate) const PROTOCOL: &str = "http";

/// The client's span. Several of them count as none.
fn traceparent(headers: &HeaderMap) -> Option<&[u8]> {
    let one = headers.get(TRACEPARENT)?;
    (headers.get_all(TRACEPARENT).iter().count() == 1).then(|| one.as_bytes())
}

/// A request whose body may not have been read yet.
pub(crate) struct Received {
    pub request: Request<Incoming>,
    call: CallGuard,
    connection: Arc<Connection>,
    sent_headers: Option<SentHeaders>,
    is_last: bool,
    /// Who sends it; anybody, until that was asked.
    pub caller: Caller,
    /// What is told of the request.
    pub exchange: Exchange,
    /// What the body takes of the server's budget.
    pub memory: MemoryReservation,
    /// What the request takes of its client's limits.
    share: Option<Box<ClientShare>>,
}

impl Received {
    pub fn new(
        request: Request<Incoming>,
        call: CallGuard,
        connection: &Arc<Connection>,
        state: &ServerState,
    ) -> Self {
        let exchange = state.options.requests.begin(
            connection.client.peer,
            &call_of(&request),
            traceparent(request.headers()),
        );
        Self {
            exchange,
            sent_headers: connection.wire.sent_headers(&request),
            request,
            call,
            connection: connection.clone(),
            is_last: false,
            caller: Caller::default(),
            memory: state.options.memory.reservation(),
            share: None,
        }
    }

    /// The headers, for what looks at their spelling.
    pub fn headers_as_sent(&self) -> RequestHeaders<'_> {
        RequestHeaders { parsed: self.headers(), sent: self.sent_headers.as_ref() }
    }

    /// What the requests of its connection share.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Whether the connection is to be closed after this request.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The length of the body, where the client has said it.
    pub fn content_length(&self) -> Option<u64> {
        self.request.body().size_hint().exact()
    }

    /// The whole body, of at most `limit` bytes; see [`request_body::read`].
    pub async fn body(
        &mut self,
        header_length: Option<usize>,
        limit: SizeLimit,
    ) -> Result<bytes::Bytes, BodyError> {
        let is_announced = self.content_length().is_some();
        let _receiving = self.call.activity().receive();
        let (body, memory) = (self.request.body_mut(), &mut self.memory);
        let read =
            request_body::read(body, &self.connection.wire, header_length, limit, memory).await;
        self.exchange.has_received(read.as_ref().map_or(0, bytes::Bytes::len));
        self.is_last = matches!(read, Err(BodyError::TooManyChunks(_)));
        let body = read?;
        if !is_announced {
            self.grow_share(body.len())?;
        }
        Ok(body)
    }

    /// Takes what the request needs of its client's limits, as far as its head says it.
    pub fn begin_share(&mut self) -> Result<(), ClientLimitError> {
        let bytes = self.content_length().unwrap_or_default();
        self.share = self.caller.begin(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(())
    }

    /// The body turned out to be of this length.
    fn grow_share(&mut self, bytes: usize) -> Result<(), ClientLimitError> {
        match (self.caller.account(), &mut self.share) {
            (Some(account), Some(share)) => account.grow(share, bytes),
            _ => Ok(()),
        }
    }

    /// The context of the request, which holds what the body took from now on.
    pub fn context(&mut self) -> RequestContext {
        let identity = self.caller.identity().cloned();
        let memory = std::mem::take(&mut self.memory);
        let share = self.share.take();
        RequestContext { identity, memory, share, ..RequestContext::new() }
    }

    /// The connection is busy until this is dropped. What no handler has read of the body is read and dropped while the
    /// response is sent already: some clients read it at once, others when they have sent all.
    pub fn into_call(self) -> CallGuard {
        // A client that waits for `100 Continue` is not asked to send what nobody reads.
        let has_rest = !self.request.body().is_end_stream() && !self.headers().contains_key(EXPECT);
        let mut body = self.request.into_body();
        if has_rest {
            let receiving = self.call.activity().receive();
            tokio::spawn(async move {
                request_body::discard(&mut body).await;
                drop(receiving);
            });
        }
        self.call
    }
}

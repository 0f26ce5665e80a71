//! A request as it came in, with what is held for it.

use std::sync::Arc;

use galatea_frontend::{Activity, Call, Caller, ClientLimitError, Exchange};
use galatea_http1::RequestHead;
use galatea_types::{ClientShare, MemoryReservation, RequestContext, TraceContext};

use crate::{
    body_error::{BodyError, SizeLimit},
    request_body,
    state::{Connection, ServerState},
};

/// What a request asks for, as the log calls it.
pub(crate) fn call_of(head: &RequestHead) -> Call<'_> {
    Call { protocol: PROTOCOL, method: head.method().as_str(), path: head.path() }
}

/// The name of the protocol in the log.
pub(crate) const PROTOCOL: &str = "http";

/// The client's span. Several of them count as none.
fn traceparent(head: &RequestHead) -> Option<&[u8]> {
    let mut all = head.get_all(TraceContext::HEADER);
    let one = all.next()?;
    all.next().is_none().then_some(one)
}

/// A request whose body may not have been read yet.
pub(crate) struct Received<'c> {
    pub head: &'c RequestHead,
    activity: &'c Arc<Activity>,
    /// What the requests of its connection share.
    pub connection: &'c Arc<Connection>,
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

impl<'c> Received<'c> {
    pub fn new(
        head: &'c RequestHead,
        activity: &'c Arc<Activity>,
        connection: &'c Arc<Connection>,
        state: &ServerState,
    ) -> Self {
        let peer = connection.client.peer;
        Self {
            exchange: state.options.requests.begin(peer, &call_of(head), traceparent(head)),
            head,
            activity,
            connection,
            is_last: false,
            caller: Caller::default(),
            memory: state.options.memory.reservation(),
            share: None,
        }
    }

    /// Whether the connection is to be closed after this request.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The length of the body, where the client has said it.
    pub fn content_length(&self) -> Option<u64> {
        self.head.framing().length()
    }

    /// The whole body, of at most `limit` bytes; see [`request_body::read`].
    pub async fn body(
        &mut self,
        header_length: Option<usize>,
        limit: SizeLimit,
    ) -> Result<bytes::Bytes, BodyError> {
        let framing = self.head.framing();
        let _receiving = self.activity.receive();
        let memory = &mut self.memory;
        let read = request_body::read(self.connection, framing, header_length, limit, memory).await;
        self.exchange.has_received(read.as_ref().map_or(0, bytes::Bytes::len));
        self.is_last = matches!(read, Err(BodyError::TooManyChunks(_)));
        let body = read?;
        if framing.length().is_none() {
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
}

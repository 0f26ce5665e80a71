//! A request as it came in, with what is held for it.

use std::sync::Arc;

use galatea_frontend::CallGuard;
use galatea_types::{MemoryBudget, MemoryReservation, RequestContext};
use http::{HeaderMap, Request, header::EXPECT};
use hyper::body::{Body as _, Incoming};

use crate::{
    body_error::{BodyError, SizeLimit},
    request_body,
};

/// A request whose body may not have been read yet.
pub(crate) struct Received {
    pub request: Request<Incoming>,
    call: CallGuard,
    /// What the body takes of the server's budget.
    pub memory: MemoryReservation,
}

impl Received {
    pub fn new(request: Request<Incoming>, call: CallGuard, budget: &Arc<MemoryBudget>) -> Self {
        Self { request, call, memory: budget.reservation() }
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
        let _receiving = self.call.activity().receive();
        request_body::read(self.request.body_mut(), header_length, limit, &mut self.memory).await
    }

    /// The context of the request, which holds what the body took from now on.
    pub fn context(&mut self) -> RequestContext {
        RequestContext { memory: std::mem::take(&mut self.memory), ..RequestContext::new() }
    }

    /// The connection is busy until this is dropped. What no handler has read of the body is read and dropped while the
    /// response is sent already: some clients read it at once, others when they have sent all.
    pub fn into_call(self) -> CallGuard {
        // A client that waits for `100 Continue` is not asked to send what nobody reads.
        let is_awaited = !self.headers().contains_key(EXPECT);
        let mut body = self.request.into_body();
        if is_awaited && !body.is_end_stream() {
            let receiving = self.call.activity().receive();
            tokio::spawn(async move {
                request_body::discard(&mut body).await;
                drop(receiving);
            });
        }
        self.call
    }
}

//! The responses to one request, as they come.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use galatea_engine::ServedModel;
use galatea_frontend::{CancelOnDrop, OnOverflow, ResponseKey, ResponseReceiver};
use galatea_types::{Error, InferRequest, MemoryBudget, Refused, RequestContext, Response, Result};

/// How many bytes of responses may wait for a client that does not read. A request whose responses pile up higher
/// is cut off.
const MAX_BACKLOG: usize = 256 << 20;

/// The responses to a request that was handed to its model. Dropped before the last one, it cancels the request.
pub(crate) struct ResponseStream {
    receiver: ResponseReceiver,
    cancel: Option<CancelOnDrop>,
}

impl ResponseStream {
    /// Hands the request to the model. Fails where it is refused at once, before any inference.
    pub fn submit(
        request: InferRequest,
        context: RequestContext,
        model: &ServedModel,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self> {
        let receiver = ResponseReceiver::new(MAX_BACKLOG, OnOverflow::Deliver, budget);
        let cancellation = context.cancellation.clone();
        let responder = receiver.responder(ResponseKey::Unordered(0), cancellation.clone());
        model.infer(request, context, responder).map_err(Refused::into_error)?;
        Ok(Self { receiver, cancel: Some(CancelOnDrop::new(cancellation)) })
    }

    /// The next response. Nothing comes after the final one.
    pub async fn next(&mut self) -> Response {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The next response. Nothing comes after the final one.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Response> {
        let response = match ready!(self.receiver.poll_next(context)) {
            Ok(received) => {
                self.receiver.release(received.weight());
                received.response
            }
            Err(_) => cut_off(),
        };
        if response.is_final
            && let Some(cancel) = self.cancel.take()
        {
            cancel.disarm();
        }
        Poll::Ready(response)
    }
}

fn cut_off() -> Response {
    let error = Error::unavailable(format!(
        "more than {MAX_BACKLOG} bytes of responses wait for a client that does not read them, or more than the server has \
         left (--memory-budget)"
    ));
    Response { result: Some(Err(error)), is_final: true }
}

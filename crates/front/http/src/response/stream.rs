//! The responses to one request, as they arrive.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use galatea_engine::{
    ServedModel,
    call::{DecodedCall, RunningCall},
};
use galatea_frontend::{OnOverflow, ResponseKey, ResponseReceiver};
use galatea_types::{CallRecord, Error, MemoryBudget, Response, Result};

/// The most bytes of responses that may wait for a client that does not read. A request with more is cut off.
const MAX_BACKLOG: usize = 256 << 20;

/// The responses to a submitted request. Dropping this before the last one cancels the request.
pub(crate) struct ResponseStream {
    receiver: ResponseReceiver,
    running: RunningCall<()>,
}

impl ResponseStream {
    /// Submits the request to its model. Returns the responses and the plan for encoding them.
    ///
    /// # Errors
    /// When the model refuses the request at once, before any inference.
    pub fn start<P>(
        decoded: DecodedCall<P>,
        record: &mut impl CallRecord,
        budget: &Arc<MemoryBudget>,
    ) -> Result<(Self, P)> {
        let receiver = ResponseReceiver::new(MAX_BACKLOG, OnOverflow::Deliver, budget);
        let running = decoded.submit(record, |cancellation| {
            receiver.responder(ResponseKey::Unordered(0), cancellation.clone())
        })?;
        let (running, plan) = running.split();
        Ok((Self { receiver, running }, plan))
    }

    pub fn model(&self) -> &Arc<ServedModel> {
        self.running.model()
    }

    /// Returns the next response. Nothing comes after the final one.
    pub async fn next(&mut self) -> Response {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Response> {
        let response = match ready!(self.receiver.poll_next(context)) {
            Ok(received) => {
                self.receiver.release(received.weight());
                received.response
            }
            Err(_) => cut_off(),
        };
        if response.is_final {
            self.running.end();
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

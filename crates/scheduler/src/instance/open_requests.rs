//! Requests that an instance executes one by one and has all at once.

use std::sync::Arc;

use galatea_backend::{Batch, Outcome, PendingRequest};
use galatea_telemetry::FailureReason;
use galatea_types::{Error, Origin, RequestContext, Responder, Result, Timeline, Trace};

use super::responses::Responses;
use crate::queued_request::QueuedRequest;

/// Requests an instance has at once, each in a batch of its own. Their responders stay here: whatever becomes of
/// the batches, each request is answered and counted once.
#[derive(Default)]
pub(crate) struct OpenRequests {
    open: Vec<Option<OpenRequest>>,
    /// Not started: to be put back into the queue.
    not_begun: Vec<QueuedRequest>,
}

/// What the answer to a request needs when its batch is lost.
struct OpenRequest {
    responder: Responder,
    id: String,
    trace: Option<Arc<dyn Trace>>,
    origin: Origin,
    timeline: Timeline,
}

impl OpenRequests {
    /// Keeps the responder. The number of the request's batch must be the number of requests entered before it.
    pub fn enter(&mut self, mut pending: PendingRequest) -> PendingRequest {
        let responder = std::mem::replace(&mut pending.responder, Responder::spent());
        let PendingRequest { request, context, .. } = &mut pending;
        self.open.push(Some(OpenRequest {
            responder,
            id: request.id.clone(),
            trace: context.trace.take(),
            origin: context.origin.clone(),
            timeline: context.timeline,
        }));
        pending
    }

    /// Answers the request of a complete batch; a batch handed back twice is answered once.
    pub fn answer(&mut self, responses: &Responses, mut batch: Batch) {
        let entry = self.open.get_mut(batch.number());
        let Some(OpenRequest { responder, trace, .. }) = entry.and_then(Option::take) else {
            return;
        };
        batch.pending_mut().for_each(|pending| pending.context.trace.clone_from(&trace));
        if matches!(batch.outcomes().next(), Some((_, Outcome::NotBegun))) {
            if let Some((pending, _)) = batch.into_outcomes().next() {
                self.not_begun.push(QueuedRequest::new(PendingRequest { responder, ..pending }));
            }
            return;
        }
        responses.accounting().executed(&mut batch, None, || responses.unanswered());
        let outcome = batch.into_outcomes().next().map(|(_, outcome)| outcome);
        let result: Result<_> = match outcome {
            Some(Outcome::Answered(result)) => result,
            _ => Err(responses.unanswered()),
        };
        responder.finish(result);
    }

    /// Those that were handed back, in the order they came.
    pub fn take_not_begun(&mut self) -> Vec<QueuedRequest> {
        std::mem::take(&mut self.not_begun)
    }

    /// Answers what was not handed back.
    pub fn fail(self, responses: &Responses, error: &Error) {
        for request in self.open.into_iter().flatten() {
            let OpenRequest { responder, id, trace, origin, timeline } = request;
            let context = RequestContext::received_at(timeline.received);
            let mut context = RequestContext { trace, origin, timeline, ..context };
            responses.accounting().failed(&id, &mut context, FailureReason::Backend, error);
            responder.finish(Err(error.clone()));
        }
    }
}

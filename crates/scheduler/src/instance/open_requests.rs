//! Requests that an instance executes one by one and has all at once.

use std::time::Instant;

use galatea_backend::{Batch, Job, Outcome};
use galatea_telemetry::FailureReason;
use galatea_types::{Error, Responder, Result};

use super::responses::Responses;
use crate::{accounting::RequestFacts, queued_request::QueuedRequest};

/// Requests an instance has at once, each in a batch of its own. Their responders stay here: whatever becomes of
/// the batches, each request is answered and counted once.
#[derive(Default)]
pub(crate) struct OpenRequests {
    open: Vec<Option<OpenRequest>>,
    /// To be executed by whoever comes next.
    not_begun: Vec<QueuedRequest>,
}

struct OpenRequest {
    responder: Responder,
    id: String,
    received_at: Instant,
    is_step: bool,
}

impl OpenRequests {
    /// Keeps the responder. The number of the job's batch must be the number of jobs entered before it.
    pub fn enter(&mut self, job: Job) -> Job {
        let Job { request, responder, queued_at } = job;
        let RequestFacts { id, received_at, is_step } = RequestFacts::of(&request);
        self.open.push(Some(OpenRequest { responder, id: id.to_owned(), received_at, is_step }));
        Job { request, responder: Responder::spent(), queued_at }
    }

    /// Answers the request of a complete batch; a batch handed back twice is answered once.
    pub fn answer(&mut self, responses: &Responses, batch: Batch) {
        let entry = self.open.get_mut(batch.number());
        let Some(open) = entry.and_then(Option::take) else { return };
        if matches!(batch.outcomes().next(), Some((_, Outcome::NotBegun))) {
            if let Some((job, _)) = batch.into_outcomes().next() {
                let job = Job { responder: open.responder, ..job };
                self.not_begun.push(QueuedRequest::new(job));
            }
            return;
        }
        responses.accounting().executed(&batch, None, || responses.unanswered());
        let outcome = batch.into_outcomes().next().map(|(_, outcome)| outcome);
        let result: Result<_> = match outcome {
            Some(Outcome::Answered(result)) => result,
            _ => Err(responses.unanswered()),
        };
        open.responder.finish(result);
    }

    /// Those that were handed back, in the order they came.
    pub fn take_not_begun(&mut self) -> Vec<QueuedRequest> {
        std::mem::take(&mut self.not_begun)
    }

    /// Answers what was not handed back.
    pub fn fail(self, responses: &Responses, error: &Error) {
        for request in self.open.into_iter().flatten() {
            let OpenRequest { ref id, received_at, is_step, .. } = request;
            let facts = RequestFacts { id, received_at, is_step };
            responses.accounting().failed(facts, FailureReason::Backend, error);
            request.responder.finish(Err(error.clone()));
        }
    }
}

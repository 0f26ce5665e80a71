use std::time::Instant;

use galatea_backend::{Batch, Job, Outcome};
use galatea_telemetry::FailureReason;
use galatea_types::{Error, Responder, Result};

use crate::{desk::Desk, ticket::Ticket};

/// Requests an instance has at once, each in a batch of its own, with their ways back: whatever becomes of
/// the batches, each request is answered and counted once.
#[derive(Default)]
pub(crate) struct OpenRequests {
    open: Vec<Option<OpenRequest>>,
    /// To be executed by whoever comes next.
    not_begun: Vec<Ticket>,
}

struct OpenRequest {
    responder: Responder,
    received_at: Instant,
    is_step: bool,
}

impl OpenRequests {
    /// Keeps the way back. The number of the job's batch must be the number of jobs entered before it.
    pub fn enter(&mut self, job: Job) -> Job {
        let Job { request, responder, queued_at } = job;
        self.open.push(Some(OpenRequest {
            responder,
            received_at: request.received_at,
            is_step: request.step_times.is_some(),
        }));
        Job { request, responder: Responder::spent(), queued_at }
    }

    /// Answers the request of a complete batch; a batch handed back twice is answered once.
    pub fn answer(&mut self, desk: &Desk, batch: Batch) {
        let place = self.open.get_mut(batch.number());
        let Some(open) = place.and_then(Option::take) else { return };
        if matches!(batch.outcomes().next(), Some((_, Outcome::NotBegun))) {
            if let Some((job, _)) = batch.into_outcomes().next() {
                let job = Job { responder: open.responder, ..job };
                self.not_begun.push(Ticket { job, place: 0 });
            }
            return;
        }
        desk.count_executed(&batch);
        let outcome = batch.into_outcomes().next().map(|(_, outcome)| outcome);
        let result: Result<_> = match outcome {
            Some(Outcome::Answered(result)) => result,
            _ => Err(desk.unanswered()),
        };
        open.responder.finish(result);
    }

    /// Those that were handed back, in the order they came.
    pub fn take_not_begun(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.not_begun)
    }

    /// Answers what was not handed back.
    pub fn fail(self, desk: &Desk, error: &Error) {
        for request in self.open.into_iter().flatten() {
            let total = request.received_at.elapsed();
            desk.record_failure(FailureReason::Backend, request.is_step, total);
            request.responder.finish(Err(error.clone()));
        }
    }
}

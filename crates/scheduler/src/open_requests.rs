use std::time::Instant;

use galatea_backend::{Batch, Job, Outcome};
use galatea_telemetry::FailureReason;
use galatea_types::{Error, Responder, Result};

use crate::desk::Desk;

/// Requests an instance has at once, each in a batch of its own, with their ways back: whatever becomes of
/// the batches, each request is answered and counted once.
#[derive(Default)]
pub(crate) struct OpenRequests(Vec<Option<OpenRequest>>);

struct OpenRequest {
    responder: Responder,
    received_at: Instant,
    is_step: bool,
}

impl OpenRequests {
    /// Keeps the way back. The number of the job's batch must be the number of jobs entered before it.
    pub fn enter(&mut self, job: Job) -> Job {
        let Job { request, responder, queued_at } = job;
        self.0.push(Some(OpenRequest {
            responder,
            received_at: request.received_at,
            is_step: request.step_times.is_some(),
        }));
        Job { request, responder: Responder::spent(), queued_at }
    }

    /// Answers the request of a complete batch; a batch handed back twice is answered once.
    pub fn answer(&mut self, desk: &Desk, batch: Batch) {
        let Some(request) = self.0.get_mut(batch.number()).and_then(Option::take) else { return };
        desk.count_executed(&batch);
        let outcome = batch.into_outcomes().next().map(|(_, outcome)| outcome);
        let result: Result<_> = match outcome {
            Some(Outcome::Answered(result)) => result,
            _ => Err(desk.unanswered()),
        };
        request.responder.finish(result);
    }

    /// Answers what was not handed back.
    pub fn fail(self, desk: &Desk, error: &Error) {
        for request in self.0.into_iter().flatten() {
            let total = request.received_at.elapsed();
            desk.record_failure(FailureReason::Backend, request.is_step, total);
            request.responder.finish(Err(error.clone()));
        }
    }
}

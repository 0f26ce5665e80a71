use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{Batch, Job, Outcome};
use galatea_telemetry::{BatchRecord, FailureReason, ModelStatistics, RequestRecord};
use galatea_types::{Code, Error, InferRequest, Refused};

use crate::{
    completion::CompletionQueue, execution::Execution, line::Refusal, queue::DropReason,
    ticket::Ticket,
};

/// Where requests of one model are counted and answered, in that order: a client that has its answer
/// finds it counted.
pub(crate) struct Desk {
    pub model_name: Arc<str>,
    pub statistics: Arc<ModelStatistics>,
    /// Present when answers leave in the order of arrival.
    pub completion: Option<Arc<CompletionQueue>>,
}

impl Desk {
    /// Counts a request that never entered the queue.
    pub fn refuse(&self, ticket: Ticket, refusal: Refusal) -> Refused {
        let prefix = ticket.job.request.message_prefix();
        let (reason, error) = match refusal {
            Refusal::Closed => (
                FailureReason::Rejected,
                Error::unavailable(format!(
                    "{prefix}Server is stopping, scheduler for model has stopped accepting new \
                     inference requests"
                )),
            ),
            Refusal::Full => (
                FailureReason::Rejected,
                Error::unavailable(format!("{prefix}Exceeds maximum queue size")),
            ),
            Refusal::Outage(error) => (FailureReason::Other, self.outage(&error).prefixed(prefix)),
        };
        self.count_failure(&ticket.job, reason, Instant::now());
        // It has no place in the order of answers: it was never accepted.
        Refused::new(error, ticket.job.responder)
    }

    /// Answers requests that left the queue without being executed.
    pub fn answer_dropped(&self, dropped: Vec<(Ticket, DropReason)>) {
        for (ticket, reason) in dropped {
            let (reason, error) = match reason {
                DropReason::Expired => {
                    (FailureReason::Rejected, Error::unavailable("Request timeout expired"))
                }
                DropReason::Abandoned => {
                    (FailureReason::Canceled, Error::cancelled("Request was cancelled"))
                }
            };
            self.fail_queued(ticket, reason, error);
        }
    }

    /// Answers queued requests that nothing can execute any more.
    pub fn answer_outage(&self, tickets: Vec<Ticket>, reason: &Error) {
        for ticket in tickets {
            self.fail_queued(ticket, FailureReason::Other, self.outage(reason));
        }
    }

    /// Takes a request out of the queue: what is answered from now on keeps the order, if there is one.
    pub fn take(&self, ticket: Ticket) -> Job {
        self.statistics.pending_down();
        let Ticket { mut job, place } = ticket;
        if let Some(completion) = &self.completion {
            job.responder = completion.clone().admit(place, job.responder);
        }
        job
    }

    /// Counts and answers an executed batch. Returns how many of its requests are answered elsewhere.
    pub fn answer_batch(&self, batch: Batch, execution: Option<&Execution>) -> usize {
        self.count_batch(&batch, execution, Instant::now());
        let mut detached = 0;
        for (job, outcome) in batch.into_outcomes() {
            match outcome {
                Outcome::Answered(result) => job.responder.finish(result),
                Outcome::Unanswered | Outcome::NotBegun => {
                    job.responder.finish(Err(self.unanswered()));
                }
                Outcome::Detached => detached += 1,
            }
        }
        detached
    }

    fn fail_queued(&self, ticket: Ticket, reason: FailureReason, error: Error) {
        let job = self.take(ticket);
        self.count_failure(&job, reason, Instant::now());
        job.responder.finish(Err(error));
    }

    /// Counts an executed batch whose answers the caller sends.
    pub fn count_executed(&self, batch: &Batch) {
        self.count_batch(batch, None, Instant::now());
    }

    /// A failed request counts as a failure only; an execution counts when a request of it succeeded or
    /// is answered elsewhere, and then once: see [`Execution`].
    fn count_batch(&self, batch: &Batch, execution: Option<&Execution>, end: Instant) {
        let mut items = 0;
        for (job, outcome) in batch.outcomes() {
            match outcome {
                Outcome::Answered(Ok(_)) | Outcome::Detached => items += item_count(&job.request),
                Outcome::Answered(Err(e)) => {
                    self.count_failure(job, failure_reason(Some(e.code())), end);
                }
                Outcome::Unanswered | Outcome::NotBegun => {
                    self.count_failure(job, failure_reason(None), end);
                }
            }
        }
        if items == 0 {
            return;
        }
        let record = batch_record(batch, items, end);
        let started_at = batch.started_at();
        let successes =
            batch.outcomes().filter(|(_, outcome)| matches!(outcome, Outcome::Answered(Ok(_))));
        let requests = successes.map(|(job, _)| {
            if let Some(times) = &job.request.step_times {
                times.add(record.compute_input, record.compute_infer, record.compute_output);
            }
            RequestRecord {
                total: end.saturating_duration_since(job.request.received_at),
                queue: started_at.saturating_duration_since(job.queued_at),
                compute_input: record.compute_input,
                compute_infer: record.compute_infer,
                compute_output: record.compute_output,
            }
        });
        match execution {
            Some(execution) if !execution.is_first_to_count() => {
                self.statistics.record_successes(requests);
            }
            _ => self.statistics.record_execution(&record, requests),
        }
    }

    fn count_failure(&self, job: &Job, reason: FailureReason, end: Instant) {
        let total = end.saturating_duration_since(job.request.received_at);
        self.record_failure(reason, job.request.step_times.is_some(), total);
    }

    pub fn record_failure(&self, reason: FailureReason, is_step: bool, total: Duration) {
        // M-43: why a step failed is told as OTHER.
        let reason = if is_step { FailureReason::Other } else { reason };
        self.statistics.record_failure(reason, total);
    }

    fn outage(&self, reason: &Error) -> Error {
        let model = &self.model_name;
        Error::unavailable(format!("model '{model}' has no working instance: {reason}"))
    }

    pub fn unanswered(&self) -> Error {
        let model = &self.model_name;
        Error::internal(format!("the backend of model '{model}' gave no response to the request"))
    }
}

/// `code`: of the error, where the backend gave one.
pub(crate) fn failure_reason(code: Option<Code>) -> FailureReason {
    match code {
        Some(Code::Cancelled) => FailureReason::Canceled,
        _ => FailureReason::Backend,
    }
}

pub(crate) fn item_count(request: &InferRequest) -> u64 {
    u64::from(request.batch_size.max(1))
}

fn batch_record(batch: &Batch, items: u64, end: Instant) -> BatchRecord {
    let (input_done, output_started) = batch.marks(end);
    BatchRecord {
        batch_size: items,
        compute_input: input_done.saturating_duration_since(batch.started_at()),
        compute_infer: output_started.saturating_duration_since(input_done),
        compute_output: end.saturating_duration_since(output_started),
    }
}

//! Counting the requests of one model version.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{Batch, Outcome, StreamEnd};
use galatea_telemetry::{BatchRecord, FailureReason, ModelStatistics, RequestRecord};
use galatea_types::{Code, Error, InferRequest, StepTimes};

use super::{count_once::CountOnce, failure_log::FailureLog, request_facts::RequestFacts};

/// Counts the requests of one model version. A failed request counts as a failure only; an execution counts when a
/// request of it succeeded or is answered later, and then once.
pub(crate) struct RequestAccounting {
    statistics: Arc<ModelStatistics>,
    failure_log: Option<FailureLog>,
}

impl RequestAccounting {
    /// For a model with instances.
    pub fn new(model: Arc<str>, version: i64, statistics: Arc<ModelStatistics>) -> Self {
        Self { statistics, failure_log: Some(FailureLog::new(model, version)) }
    }

    /// For an ensemble, which only passes on how its steps failed: that was logged there.
    pub fn of_ensemble(statistics: Arc<ModelStatistics>) -> Self {
        Self { statistics, failure_log: None }
    }

    /// A request is about to be queued.
    pub fn queued(&self) {
        self.statistics.pending_up();
    }

    /// Requests that were taken are about to be queued again.
    pub fn put_back(&self, count: usize) {
        (0..count).for_each(|_| self.statistics.pending_up());
    }

    /// A request has left the queue.
    pub fn dequeued(&self) {
        self.statistics.pending_down();
    }

    /// A request failed now, or was not accepted.
    pub fn failed(&self, request: RequestFacts<'_>, reason: FailureReason, error: &Error) {
        self.failed_at(Instant::now(), request, reason, error);
    }

    fn failed_at(
        &self,
        end: Instant,
        request: RequestFacts<'_>,
        reason: FailureReason,
        error: &Error,
    ) {
        // Whatever made a step of an ensemble fail, the reason counted is OTHER.
        let reason = if request.is_step { FailureReason::Other } else { reason };
        let total = end.saturating_duration_since(request.received_at);
        self.statistics.record_failure(reason, total);
        if let Some(log) = &self.failure_log {
            log.failed(request.id, error);
        }
    }

    /// Counts an executed batch. `once` is shared with the requests of the batch that are answered later;
    /// `unanswered` is the error of requests that got no response.
    pub fn executed(
        &self,
        batch: &Batch,
        once: Option<&CountOnce>,
        unanswered: impl Fn() -> Error,
    ) {
        let end = Instant::now();
        let mut items = 0;
        for (job, outcome) in batch.outcomes() {
            let facts = RequestFacts::of(&job.request);
            match outcome {
                Outcome::Answered(Ok(_)) | Outcome::Detached => {
                    items += u64::from(job.request.batch_size.max(1));
                }
                Outcome::Answered(Err(e)) => self.failed_at(end, facts, reason_for(e.code()), e),
                Outcome::Unanswered | Outcome::NotBegun => {
                    self.failed_at(end, facts, FailureReason::Backend, &unanswered());
                }
            }
        }
        if items == 0 {
            return;
        }
        let record = batch_record(batch, items, end);
        let requests = successes(batch, &record, end);
        match once {
            Some(once) if !once.is_first() => self.statistics.record_successes(requests),
            _ => self.statistics.record_execution(&record, requests),
        }
    }

    /// Counts a request that was answered after its execution had returned. `items`: of the whole execution.
    pub fn stream_ended(&self, stream: &StreamEnd, once: &CountOnce, items: u64) {
        let record = stream_record(stream, Instant::now());
        if once.is_first() {
            self.statistics.record_execution(&batch_of(&record, items), []);
        }
        if let Some(code) = stream.failure {
            let is_step = stream.step_times.is_some();
            let reason = if is_step { FailureReason::Other } else { reason_for(code) };
            self.statistics.record_failure(reason, record.total);
            return;
        }
        add_to_ensemble(stream.step_times.as_deref(), &record);
        self.statistics.record_successes([record]);
    }

    /// Counts a request of an ensemble: one execution, however many steps it took. Its compute times are the sums
    /// of theirs, and it has no queue of its own.
    pub fn ensemble_succeeded(&self, request: &InferRequest, times: &StepTimes) {
        let [compute_input, compute_infer, compute_output] = times.sums();
        let record = RequestRecord {
            total: request.received_at.elapsed(),
            queue: Duration::ZERO,
            compute_input,
            compute_infer,
            compute_output,
        };
        add_to_ensemble(request.step_times.as_deref(), &record);
        let items = u64::from(request.batch_size.max(1));
        self.statistics.record_execution(&batch_of(&record, items), [record]);
    }
}

fn successes(
    batch: &Batch,
    record: &BatchRecord,
    end: Instant,
) -> impl Iterator<Item = RequestRecord> {
    let started_at = batch.started_at();
    let succeeded =
        batch.outcomes().filter(|(_, outcome)| matches!(outcome, Outcome::Answered(Ok(_))));
    succeeded.map(move |(job, _)| {
        let request = RequestRecord {
            total: end.saturating_duration_since(job.request.received_at),
            queue: started_at.saturating_duration_since(job.queued_at),
            compute_input: record.compute_input,
            compute_infer: record.compute_infer,
            compute_output: record.compute_output,
        };
        add_to_ensemble(job.request.step_times.as_deref(), &request);
        request
    })
}

/// A request that is a step adds its compute times to those of the ensemble's request.
fn add_to_ensemble(times: Option<&StepTimes>, step: &RequestRecord) {
    if let Some(times) = times {
        times.add(step.compute_input, step.compute_infer, step.compute_output);
    }
}

fn reason_for(code: Code) -> FailureReason {
    match code {
        Code::Cancelled => FailureReason::Canceled,
        _ => FailureReason::Backend,
    }
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

fn batch_of(request: &RequestRecord, items: u64) -> BatchRecord {
    BatchRecord {
        batch_size: items,
        compute_input: request.compute_input,
        compute_infer: request.compute_infer,
        compute_output: request.compute_output,
    }
}

/// Computing and answering are one here: responses leave while others are computed.
fn stream_record(stream: &StreamEnd, end: Instant) -> RequestRecord {
    let input_done = stream.input_done_at.unwrap_or(stream.started_at);
    RequestRecord {
        total: end.saturating_duration_since(stream.received_at),
        queue: stream.started_at.saturating_duration_since(stream.queued_at),
        compute_input: input_done.saturating_duration_since(stream.started_at),
        compute_infer: end.saturating_duration_since(input_done),
        ..RequestRecord::default()
    }
}

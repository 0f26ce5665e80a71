//! Counting the requests of one model version.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use galatea_backend::{Batch, Outcome, PendingRequest, RequestEnd};
use galatea_telemetry::{
    BatchRecord, CacheHitRecord, FailureReason, ModelStatistics, RequestRecord,
};
use galatea_types::{Clock, Code, Error, RequestContext, StepTimes, Timeline};

use super::failure_log::FailureLog;
use crate::request_failure::RequestFailure;

/// Counts the requests of one model version. A failed request counts as a failure and as no inference; an execution counts
/// once, whatever became of its requests.
pub(crate) struct RequestAccounting {
    pub statistics: Arc<ModelStatistics>,
    failure_log: Option<FailureLog>,
}

impl RequestAccounting {
    /// For a model with instances.
    pub fn new(model: Arc<str>, version: i64, statistics: Arc<ModelStatistics>) -> Self {
        Self { statistics, failure_log: Some(FailureLog::new(model, version)) }
    }

    /// Beside the scheduler that executes: of an ensemble, which only passes on how its steps failed, and of the response cache.
    /// What failed was logged there.
    pub fn beside_executor(statistics: Arc<ModelStatistics>) -> Self {
        Self { statistics, failure_log: None }
    }

    /// The same figures, for requests whose failures are logged elsewhere.
    pub fn unlogged(&self) -> Self {
        Self { statistics: self.statistics.clone(), failure_log: None }
    }

    /// Returns the clock that tells all times of the model.
    pub fn clock(&self) -> &Clock {
        self.statistics.clock()
    }

    /// The first response to a request is about to leave.
    pub fn responds_first(&self, context: &RequestContext) {
        if self.statistics.has_first_response() {
            let after = self.clock().since(context.timeline.received);
            self.statistics.record_first_response(after);
        }
    }

    /// A request failed now, or was not accepted. `id`: the client's.
    pub fn failed(
        &self,
        id: &str,
        context: &mut RequestContext,
        reason: FailureReason,
        error: &Error,
    ) {
        let end = self.clock().now();
        context.timeline.end = Some(end);
        self.record_failure(id, context, reason, error);
        context.finish(end);
    }

    /// Counts an executed batch, and returns when its execution ended. `once` is shared with the requests of the batch that
    /// are answered later; `unanswered` is the error of requests that got no response.
    pub fn executed(
        &self,
        batch: &mut Batch,
        once: Option<&RequestCount>,
        unanswered: impl Fn() -> Error,
    ) -> Instant {
        let end = self.clock().now();
        batch.end_at(end);
        let taken = batch.taken();
        // Each execution of a request is an inference, whether it is the last one or not.
        let again = batch.items_executed_again();
        let inferred = again + if taken.has_failed { 0 } else { taken.items };
        let mut items = Items { inferred, executed: taken.items + again };
        for (PendingRequest { request, context, is_filler, .. }, outcome) in batch.outcomes() {
            let (id, rows) = (&request.id, u64::from(request.batch_size().max(1)));
            items.executed += rows;
            if *is_filler {
                continue;
            }
            if self.statistics.has_first_response() && matches!(outcome, Outcome::Answered(_)) {
                self.statistics.record_first_response(context.timeline.total());
            }
            match outcome {
                Outcome::Answered(Ok(_)) => items.inferred += rows,
                Outcome::Answered(Err(e)) => {
                    self.record_failure(id, context, reason_for(e.code()), e);
                }
                Outcome::Unanswered => {
                    self.record_failure(id, context, FailureReason::Backend, &unanswered());
                }
                Outcome::ExecutedAgain => {
                    let error = RequestFailure::NotIterative.into();
                    self.record_failure(id, context, FailureReason::Backend, &error);
                }
            }
        }
        if items.executed > 0 {
            self.record_execution(batch, once, items);
        }
        // Not before all is counted: a trace is foreign code.
        batch.pending_mut().for_each(|pending| pending.context.finish(end));
        end
    }

    /// Counts a request that was answered after its execution had returned. `items`: of the whole execution.
    pub fn request_ended(&self, request: RequestEnd<'_>, once: &RequestCount, items: Items) {
        let RequestEnd { request_id, context, failure, .. } = request;
        let end = self.clock().now();
        context.timeline.end = Some(end);
        // Of one that failed first it is not known yet whether all of its execution did: that counts when it returns.
        if failure.is_none() && once.is_first() {
            self.statistics.record_execution(&batch_record(&context.timeline, items), []);
        }
        match failure {
            Some(e) => self.record_failure(request_id, context, reason_for(e.code()), e),
            None => self.statistics.record_successes([request_record(context)]),
        }
        context.finish(end);
    }

    /// Counts a request of an ensemble: one execution, however many steps it took. Its compute times are the sums
    /// of theirs, and it has no queue of its own.
    pub fn ensemble_succeeded(
        &self,
        batch_size: u32,
        context: &mut RequestContext,
        times: &StepTimes,
    ) {
        let end = self.clock().now();
        context.timeline.end = Some(end);
        let [compute_input, compute_infer, compute_output] = times.sums();
        if let Some(outer) = context.origin.step_times() {
            outer.add(compute_input, compute_infer, compute_output);
        }
        let batch_size = u64::from(batch_size.max(1));
        let inferences = batch_size;
        let batch =
            BatchRecord { batch_size, inferences, compute_input, compute_infer, compute_output };
        let record = RequestRecord {
            total: context.timeline.total(),
            queue: Duration::ZERO,
            compute_input,
            compute_infer,
            compute_output,
        };
        self.statistics.record_execution(&batch, [record]);
        context.finish(end);
    }

    /// A request is about to be answered with what an equal one was answered with. `waited`: for the execution of that one.
    pub fn cache_hit(&self, context: &mut RequestContext, waited: Duration, look_up: Duration) {
        let end = self.clock().now();
        context.timeline.end = Some(end);
        let total = context.timeline.total();
        self.statistics.record_cache_hit(&CacheHitRecord { total, queue: waited, look_up });
        context.finish(end);
    }

    fn record_failure(
        &self,
        id: &str,
        context: &RequestContext,
        reason: FailureReason,
        error: &Error,
    ) {
        self.statistics.record_failure(reason, context.timeline.total());
        if let Some(log) = &self.failure_log {
            log.failed(id, context.trace_context.as_deref(), error);
        }
    }

    fn record_execution(&self, batch: &Batch, once: Option<&RequestCount>, items: Items) {
        let has_succeeded = |(pending, outcome): &(&PendingRequest, &Outcome)| {
            matches!(outcome, Outcome::Answered(Ok(_))) && !pending.is_filler
        };
        let succeeded = batch.outcomes().filter(has_succeeded);
        let requests = succeeded.map(|(pending, _)| request_record(&pending.context));
        match once {
            Some(once) if !once.is_first() => self.statistics.record_successes(requests),
            _ => {
                let record = batch_record(batch.execution(), items);
                self.statistics.record_execution(&record, requests);
            }
        }
    }
}

/// Whether it was counted.
#[derive(Default)]
pub(crate) struct RequestCount(AtomicBool);

impl RequestCount {
    /// True for one caller, who must count.
    pub fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// Items of one execution.
#[derive(Clone, Copy)]
pub(crate) struct Items {
    /// Of requests that succeeded or are answered later.
    pub inferred: u64,
    /// Of all its rows.
    pub executed: u64,
}

impl Items {
    /// Of a batch whose execution begins.
    pub fn of(batch: &Batch) -> Self {
        let mut items = Self { inferred: 0, executed: 0 };
        for PendingRequest { request, is_filler, .. } in batch.pending() {
            let rows = u64::from(request.batch_size().max(1));
            items.executed += rows;
            items.inferred += if *is_filler { 0 } else { rows };
        }
        items
    }
}

fn reason_for(code: Code) -> FailureReason {
    match code {
        Code::Cancelled => FailureReason::Canceled,
        _ => FailureReason::Backend,
    }
}

/// What is recorded of a request that succeeded. A step adds its compute times to those of the ensemble's request.
fn request_record(context: &RequestContext) -> RequestRecord {
    let timeline = &context.timeline;
    let record = RequestRecord {
        total: timeline.total(),
        queue: timeline.queue(),
        compute_input: timeline.compute_input(),
        compute_infer: timeline.compute_infer(),
        compute_output: timeline.compute_output(),
    };
    if let Some(times) = context.origin.step_times() {
        times.add(record.compute_input, record.compute_infer, record.compute_output);
    }
    record
}

/// What is recorded of an execution.
fn batch_record(timeline: &Timeline, items: Items) -> BatchRecord {
    BatchRecord {
        batch_size: items.executed,
        inferences: items.inferred,
        compute_input: timeline.compute_input(),
        compute_infer: timeline.compute_infer(),
        compute_output: timeline.compute_output(),
    }
}

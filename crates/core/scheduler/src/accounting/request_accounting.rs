//! Counts the requests of one model version.

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

/// Counts the requests of one model version. A failed request counts as a failure and not as an inference. An execution
/// counts once, whatever the results of its requests are.
pub(crate) struct RequestAccounting {
    pub statistics: Arc<ModelStatistics>,
    failure_log: Option<FailureLog>,
}

impl RequestAccounting {
    /// Returns the accounting of a model with instances.
    pub fn new(model: Arc<str>, version: i64, statistics: Arc<ModelStatistics>) -> Self {
        Self { statistics, failure_log: Some(FailureLog::new(model, version)) }
    }

    /// Returns an accounting that logs no failures, because the scheduler that executes the requests has logged them.
    /// Ensembles and the response cache use it.
    pub fn beside_executor(statistics: Arc<ModelStatistics>) -> Self {
        Self { statistics, failure_log: None }
    }

    /// Returns an accounting that counts in the same statistics and logs no failures.
    pub fn unlogged(&self) -> Self {
        Self { statistics: self.statistics.clone(), failure_log: None }
    }

    /// Returns the clock that all times of the model are read from.
    pub fn clock(&self) -> &Clock {
        self.statistics.clock()
    }

    /// Records the time until the first response to a request. The response is sent afterwards.
    pub fn responds_first(&self, context: &RequestContext) {
        if self.statistics.has_first_response() {
            let after = self.clock().since(context.timeline.received);
            self.statistics.record_first_response(after);
        }
    }

    /// Records a request that failed now or was not accepted. `id` is the client's request id.
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

    /// Counts an executed batch and returns the time at which its execution ended. `once` is shared with the requests of the
    /// batch that are answered later. `unanswered` is the error of requests that got no response.
    pub fn executed(
        &self,
        batch: &mut Batch,
        once: Option<&RequestCount>,
        unanswered: impl Fn() -> Error,
    ) -> Instant {
        let end = self.clock().now();
        batch.end_at(end);
        let taken = batch.taken();
        // Each execution of a request is an inference, also when the request is executed again.
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
        // Contexts finish last: a trace is foreign code, and all counts must be written before it runs.
        batch.pending_mut().for_each(|pending| pending.context.finish(end));
        end
    }

    /// Counts a request that was answered after `execute` had returned. `items` are those of the whole execution.
    pub fn request_ended(&self, request: RequestEnd<'_>, once: &RequestCount, items: Items) {
        let RequestEnd { request_id, context, failure, .. } = request;
        let end = self.clock().now();
        context.timeline.end = Some(end);
        // If a failed request ends first, the result of the others is not known yet: the execution counts when it returns.
        if failure.is_none() && once.is_first() {
            self.statistics.record_execution(&batch_record(&context.timeline, items), []);
        }
        match failure {
            Some(e) => self.record_failure(request_id, context, reason_for(e.code()), e),
            None => self.statistics.record_successes([request_record(context)]),
        }
        context.finish(end);
    }

    /// Counts a request of an ensemble as one execution, whatever its number of steps. Its compute times are the sums
    /// of the steps' times, and it has no queue of its own.
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

    /// Counts a request that the response cache answers. `waited` is the time it waited for an equal request's execution.
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

/// A flag that makes sure that an execution is counted once.
#[derive(Default)]
pub(crate) struct RequestCount(AtomicBool);

impl RequestCount {
    /// Returns true for the first caller only, which must count the execution.
    pub fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// The numbers of items of one execution.
#[derive(Clone, Copy)]
pub(crate) struct Items {
    /// Items of requests that succeeded or are answered later.
    pub inferred: u64,
    /// Items of all rows of the execution.
    pub executed: u64,
}

impl Items {
    /// Counts the items of a batch whose execution begins.
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

/// Returns the record of a successful request. A step of an ensemble adds its compute times to the ensemble's request.
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

/// Returns the record of an execution.
fn batch_record(timeline: &Timeline, items: Items) -> BatchRecord {
    BatchRecord {
        batch_size: items.executed,
        inferences: items.inferred,
        compute_input: timeline.compute_input(),
        compute_infer: timeline.compute_infer(),
        compute_output: timeline.compute_output(),
    }
}

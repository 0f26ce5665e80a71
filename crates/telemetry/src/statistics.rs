//! Counters of one model version: requests, batches, durations, failures.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use galatea_types::LockExt;

/// How often something happened and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCount {
    /// How often.
    pub count: u64,
    /// Nanoseconds in all.
    pub ns: u64,
}

impl DurationCount {
    /// Adds `count` events that took `duration` together.
    pub fn add(&mut self, count: u64, duration: Duration) {
        self.count += count;
        self.ns += u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    }
}

/// Why a request failed, as the `reason` label names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The queue did not take it, or not in time.
    Rejected,
    /// Its client cancelled it.
    Canceled,
    /// The model failed.
    Backend,
    /// Everything else, such as a malformed request.
    Other,
}

impl FailureReason {
    /// In the order of [`StatisticsSnapshot::failures`].
    pub const ALL: [FailureReason; 4] = [
        FailureReason::Rejected,
        FailureReason::Canceled,
        FailureReason::Backend,
        FailureReason::Other,
    ];

    /// Value of the label `reason`.
    pub fn label(self) -> &'static str {
        match self {
            FailureReason::Rejected => "REJECTED",
            FailureReason::Canceled => "CANCELED",
            FailureReason::Backend => "BACKEND",
            FailureReason::Other => "OTHER",
        }
    }
}

/// Where the time of one successful request went.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestRecord {
    /// From the arrival to the last response.
    pub total: Duration,
    /// From the queue to the execution.
    pub queue: Duration,
    /// Preparing inputs.
    pub compute_input: Duration,
    /// The model itself.
    pub compute_infer: Duration,
    /// Taking outputs apart.
    pub compute_output: Duration,
}

/// One execution: `batch_size` items at once, in however many requests, and `inferences` of them with success.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchRecord {
    /// Items that were executed together.
    pub batch_size: u64,
    /// Those of requests that did not fail.
    pub inferences: u64,
    /// Preparing inputs.
    pub compute_input: Duration,
    /// The model itself.
    pub compute_infer: Duration,
    /// Taking outputs apart.
    pub compute_output: Duration,
}

/// Executions of one batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStatistics {
    /// Preparing inputs.
    pub compute_input: DurationCount,
    /// The model itself.
    pub compute_infer: DurationCount,
    /// Taking outputs apart.
    pub compute_output: DurationCount,
}

/// Everything counted for one model version, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticsSnapshot {
    /// Milliseconds since the epoch; 0 before the first inference.
    pub last_inference_ms: u64,
    /// Items that were inferred: a batch of 8 counts 8.
    pub inference_count: u64,
    /// Executions of the model: a batch of 8 counts 1.
    pub execution_count: u64,
    /// Requests that succeeded, from arrival to last response.
    pub success: DurationCount,
    /// Requests that failed, from arrival to error.
    pub fail: DurationCount,
    /// Waiting of requests that succeeded.
    pub queue: DurationCount,
    /// Preparing inputs, per request that succeeded.
    pub compute_input: DurationCount,
    /// The model itself, per request that succeeded.
    pub compute_infer: DurationCount,
    /// Taking outputs apart, per request that succeeded.
    pub compute_output: DurationCount,
    /// Answers from the response cache: none yet.
    pub cache_hit: DurationCount,
    /// Requests that the response cache could not answer: none yet.
    pub cache_miss: DurationCount,
    /// Failures by reason, in the order of [`FailureReason::ALL`].
    pub failures: [u64; 4],
    /// Executions by batch size.
    pub batches: BTreeMap<u64, BatchStatistics>,
    /// Requests in the queue at this moment.
    pub pending: i64,
}

impl StatisticsSnapshot {
    fn add_success(&mut self, request: &RequestRecord) {
        self.success.add(1, request.total);
        self.queue.add(1, request.queue);
        self.compute_input.add(1, request.compute_input);
        self.compute_infer.add(1, request.compute_infer);
        self.compute_output.add(1, request.compute_output);
    }
}

/// Counters of one model version, shared by all threads that handle its requests.
///
/// One short lock per execution keeps all figures consistent: the load tool subtracts two snapshots.
#[derive(Debug, Default)]
pub struct ModelStatistics {
    counters: Mutex<StatisticsSnapshot>,
    pending: AtomicI64,
}

impl ModelStatistics {
    /// Counts an execution and the requests it answered with success, if any. Call it before the answers are
    /// sent, so that a client that has its answer finds it counted.
    pub fn record_execution(
        &self,
        batch: &BatchRecord,
        requests: impl IntoIterator<Item = RequestRecord>,
    ) {
        let mut c = self.counters.lock_unpoisoned();
        c.last_inference_ms = unix_millis();
        c.execution_count += 1;
        c.inference_count += batch.inferences;
        let sizes = c.batches.entry(batch.batch_size).or_default();
        sizes.compute_input.add(1, batch.compute_input);
        sizes.compute_infer.add(1, batch.compute_infer);
        sizes.compute_output.add(1, batch.compute_output);
        requests.into_iter().for_each(|request| c.add_success(&request));
    }

    /// Counts requests that succeeded in an execution that is counted already: those of a decoupled model
    /// end one by one, long after they were executed.
    pub fn record_successes(&self, requests: impl IntoIterator<Item = RequestRecord>) {
        let mut c = self.counters.lock_unpoisoned();
        requests.into_iter().for_each(|request| c.add_success(&request));
    }

    /// Counts a request that failed after `total`.
    pub fn record_failure(&self, reason: FailureReason, total: Duration) {
        let mut c = self.counters.lock_unpoisoned();
        c.fail.add(1, total);
        if let Some(count) = c.failures.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// One more request waits in the queue.
    pub fn pending_up(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// One request less waits in the queue.
    pub fn pending_down(&self) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }

    /// All figures of one moment.
    pub fn snapshot(&self) -> StatisticsSnapshot {
        let mut snapshot = self.counters.lock_unpoisoned().clone();
        snapshot.pending = self.pending.load(Ordering::Relaxed);
        snapshot
    }
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

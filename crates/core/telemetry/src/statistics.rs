//! Counters of one model version: requests, batches, durations, failures.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use galatea_types::{Clock, LockExt};

use crate::{
    distributions::{DistributionSettings, Distributions, DistributionsSnapshot, RecentDurations},
    duration_count::DurationCount,
    records::{BatchRecord, CacheHitRecord, PHASES, RequestRecord},
    responses::{MAX_COUNTED_RESPONSES, ResponseRecord, ResponseStatistics},
};

/// The reason why a request failed, as the `reason` label names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The queue refused it, or it waited too long.
    Rejected,
    /// Its client cancelled it.
    Canceled,
    /// The model failed.
    Backend,
    /// Everything else, such as a malformed request.
    Other,
}

galatea_types::names! {
    /// Value of the label `reason`.
    pub FailureReason::label {
        Rejected = "REJECTED", Canceled = "CANCELED", Backend = "BACKEND", Other = "OTHER",
    }
}

/// The reason why a request was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// Its queue was full.
    QueueFull,
    /// It waited in the queue for longer than it may.
    QueueTimeout,
    /// The model is being unloaded.
    Unloading,
    /// No instance of the model works.
    NoInstance,
    /// The model has too much to do.
    Overload,
}

galatea_types::names! {
    /// Value of the label `reason`.
    pub RefusalReason::label {
        QueueFull = "queue_full", QueueTimeout = "queue_timeout", Unloading = "unloading",
        NoInstance = "no_instance", Overload = "overload",
    }
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

/// All counters of a model version, at one moment.
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
    /// Time in the queue, per request that succeeded.
    pub queue: DurationCount,
    /// Preparing inputs, per request that succeeded.
    pub compute_input: DurationCount,
    /// The model itself, per request that succeeded.
    pub compute_infer: DurationCount,
    /// Taking outputs apart, per request that succeeded.
    pub compute_output: DurationCount,
    /// Requests that were answered from the response cache, and their look-ups.
    pub cache_hit: DurationCount,
    /// Requests that the response cache could not answer: their look-ups, and the insertion if the client waited for it.
    pub cache_miss: DurationCount,
    /// Failures by reason, in the order of [`FailureReason::ALL`].
    pub failures: [u64; 4],
    /// Executions by batch size.
    pub batches: BTreeMap<u64, BatchStatistics>,
    /// Responses by their position among the responses to a request, if the backend reports them; the first
    /// [`MAX_COUNTED_RESPONSES`] only.
    pub responses: Vec<ResponseStatistics>,
    /// Requests in the queue at this moment.
    pub pending: i64,
    /// Requests that were not executed, in the order of [`RefusalReason::ALL`].
    pub refused: [u64; RefusalReason::ALL.len()],
    /// Number of restarts of instances.
    pub restarts: u64,
    /// Executions by threads that brought requests, in place of an instance's own thread.
    pub executions_in_place: u64,
}

impl StatisticsSnapshot {
    /// Returns the items of all executions, also of failed requests. Divided by `execution_count` it gives the mean batch size.
    /// `inference_count` does not, because it has only the items of requests that succeeded.
    pub fn executed_items(&self) -> u64 {
        let items = |(size, batch): (&u64, &BatchStatistics)| {
            size.saturating_mul(batch.compute_infer.count)
        };
        self.batches.iter().map(items).fold(0, u64::saturating_add)
    }

    /// Returns the durations in the order of the phases.
    pub(crate) fn phases(&self) -> [DurationCount; PHASES] {
        [self.success, self.queue, self.compute_input, self.compute_infer, self.compute_output]
    }

    fn add_success(&mut self, request: &RequestRecord) {
        self.success.add(1, request.total);
        self.queue.add(1, request.queue);
        self.compute_input.add(1, request.compute_input);
        self.compute_infer.add(1, request.compute_infer);
        self.compute_output.add(1, request.compute_output);
    }
}

/// Counts of the events of a model version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Requests that were answered, with success or failure.
    pub ended: u64,
    /// Executions of the model.
    pub executions: u64,
    /// Requests in the queue.
    pub pending: i64,
    /// Restarts of instances.
    pub restarts: u64,
}

/// Counts that only grow, for rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that were answered, with success or failure.
    pub ended: u64,
    /// Requests that failed, without those that their clients cancelled.
    pub failed: u64,
    /// The wait of requests that succeeded.
    pub queue: DurationCount,
}

impl Progress {
    /// Adds what was counted between `earlier` and `later`.
    pub fn add_since(&mut self, earlier: Self, later: Self) {
        self.ended += later.ended.saturating_sub(earlier.ended);
        self.failed += later.failed.saturating_sub(earlier.failed);
        self.queue.count += later.queue.count.saturating_sub(earlier.queue.count);
        self.queue.ns += later.queue.ns.saturating_sub(earlier.queue.ns);
    }
}

/// The counters of a model version, shared by all threads that handle its requests.
///
/// One short lock per execution keeps all figures consistent: the load tool subtracts two snapshots.
#[derive(Debug, Default)]
pub struct ModelStatistics {
    clock: Clock,
    recorded: Mutex<RecordedCounts>,
    has_first_response: bool,
    pending: AtomicI64,
    refused: [AtomicU64; RefusalReason::ALL.len()],
    restarts: AtomicU64,
    executions_in_place: AtomicU64,
}

#[derive(Debug, Default)]
struct RecordedCounts {
    counters: StatisticsSnapshot,
    distributions: Option<Box<Distributions>>,
}

impl ModelStatistics {
    /// Makes the counters, and the distributions that `settings` ask for. `clock` gives all times of the model.
    pub fn new(settings: &DistributionSettings, clock: Clock) -> Self {
        let distributions = Distributions::new(settings, clock.now());
        let has_first_response = distributions.as_ref().is_some_and(|d| d.has_first_response());
        let recorded = Mutex::new(RecordedCounts { distributions, ..RecordedCounts::default() });
        Self { clock, recorded, has_first_response, ..Self::default() }
    }

    /// Returns the clock of the model: it gives the counted times, and the times that its scheduler uses.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counts an execution and the requests it answered with success, if any. Call it before sending the answers, so that a
    /// client with an answer finds it counted.
    pub fn record_execution(
        &self,
        batch: &BatchRecord,
        requests: impl IntoIterator<Item = RequestRecord>,
    ) {
        let mut recorded = self.recorded.lock_unpoisoned();
        let c = &mut recorded.counters;
        c.last_inference_ms = unix_millis();
        c.execution_count += 1;
        c.inference_count += batch.inferences;
        let sizes = c.batches.entry(batch.batch_size).or_default();
        sizes.compute_input.add(1, batch.compute_input);
        sizes.compute_infer.add(1, batch.compute_infer);
        sizes.compute_output.add(1, batch.compute_output);
        if let Some(distributions) = &mut recorded.distributions {
            distributions.executed(batch);
        }
        recorded.add_successes(&self.clock, requests);
    }

    /// Counts requests that succeeded in an execution that is counted already: requests of a decoupled model end one by one, long
    /// after they were executed.
    pub fn record_successes(&self, requests: impl IntoIterator<Item = RequestRecord>) {
        self.recorded.lock_unpoisoned().add_successes(&self.clock, requests);
    }

    /// Counts a request that was answered from the response cache. It is a success as well.
    pub fn record_cache_hit(&self, hit: &CacheHitRecord) {
        let RecordedCounts { counters: c, distributions } = &mut *self.recorded.lock_unpoisoned();
        c.success.add(1, hit.total);
        c.queue.add(1, hit.queue);
        c.cache_hit.add(1, hit.look_up);
        if let Some(distributions) = distributions {
            distributions.cache_hit(self.clock.now(), hit);
        }
    }

    /// Counts a request that the response cache could not answer, beside its own outcome. `insertion` is the time to store its
    /// answer, which its client waits for too; `None` when nothing was stored.
    pub fn record_cache_miss(&self, look_up: Duration, insertion: Option<Duration>) {
        let RecordedCounts { counters: c, distributions } = &mut *self.recorded.lock_unpoisoned();
        let insertion = insertion.unwrap_or_default();
        // The look-up was before the execution, and is in the time of the request already.
        c.success.add(0, insertion);
        c.cache_miss.add(1, look_up + insertion);
        if let Some(distributions) = distributions {
            distributions.cache_miss(self.clock.now(), look_up + insertion);
        }
    }

    /// Counts a request that failed after `total`.
    pub fn record_failure(&self, reason: FailureReason, total: Duration) {
        let c = &mut self.recorded.lock_unpoisoned().counters;
        c.fail.add(1, total);
        if let Some(count) = c.failures.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Counts a response to a request; `number` is its position from 0. Few backends report responses.
    pub fn record_response(&self, number: usize, record: &ResponseRecord) {
        if number >= MAX_COUNTED_RESPONSES {
            return;
        }
        let responses = &mut self.recorded.lock_unpoisoned().counters.responses;
        if responses.len() <= number {
            responses.resize_with(number + 1, ResponseStatistics::default);
        }
        if let Some(counted) = responses.get_mut(number) {
            counted.add(record);
        }
    }

    /// Returns whether [`record_first_response`](Self::record_first_response) has an effect.
    pub fn has_first_response(&self) -> bool {
        self.has_first_response
    }

    /// Records the first response to a request, `after` its receipt.
    pub fn record_first_response(&self, after: Duration) {
        if let Some(distributions) = &mut self.recorded.lock_unpoisoned().distributions {
            distributions.responded_first(after);
        }
    }

    /// Counts a request that was not executed. It is a failure as well.
    pub fn record_refusal(&self, reason: RefusalReason) {
        if let Some(count) = self.refused.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the restart of an instance that had stopped working.
    pub fn record_restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an execution that a thread that brought requests begins, in place of the instance's own thread.
    pub fn record_execution_in_place(&self) {
        self.executions_in_place.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more request in the queue.
    pub fn pending_up(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one request less in the queue.
    pub fn pending_down(&self) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of requests in the queue at this moment.
    pub fn pending(&self) -> u64 {
        u64::try_from(self.pending.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns the counts of events. Two equal results have no event between them. It is cheaper than a snapshot.
    pub fn activity(&self) -> Activity {
        let pending = self.pending.load(Ordering::Relaxed);
        let restarts = self.restarts.load(Ordering::Relaxed);
        let counters = &self.recorded.lock_unpoisoned().counters;
        let StatisticsSnapshot { success, fail, execution_count: executions, .. } = counters;
        Activity { ended: success.count + fail.count, executions: *executions, pending, restarts }
    }

    /// Returns the counts for rates. It is cheaper than a snapshot.
    pub fn progress(&self) -> Progress {
        let counters = &self.recorded.lock_unpoisoned().counters;
        let cancelled = counters.failures.get(FailureReason::Canceled as usize).copied();
        Progress {
            ended: counters.success.count + counters.fail.count,
            failed: counters.fail.count.saturating_sub(cancelled.unwrap_or_default()),
            queue: counters.queue,
        }
    }

    /// Starts or stops recording the durations of requests for [`recent`](Self::recent).
    pub fn set_watched(&self, is_watched: bool) {
        let distributions = &mut self.recorded.lock_unpoisoned().distributions;
        if is_watched {
            let now = self.clock.now();
            distributions.get_or_insert_with(Distributions::nothing).watch(now);
        } else if distributions.as_mut().is_some_and(|known| known.unwatch()) {
            *distributions = None;
        }
    }

    /// Returns the total durations of requests that succeeded in the last minute, while watched; `None` when there were none.
    pub fn recent(&self) -> Option<RecentDurations> {
        self.recorded.lock_unpoisoned().distributions.as_mut()?.recent(self.clock.now())
    }

    /// Returns all counters of one moment.
    pub fn snapshot(&self) -> StatisticsSnapshot {
        let counters = self.recorded.lock_unpoisoned().counters.clone();
        self.with_gauges(counters)
    }

    /// Returns all counters of one moment, and the distributions that match them.
    pub fn scrape(&self) -> (StatisticsSnapshot, DistributionsSnapshot) {
        let mut recorded = self.recorded.lock_unpoisoned();
        let counters = recorded.counters.clone();
        let distributions = match &mut recorded.distributions {
            Some(distributions) => distributions.snapshot(self.clock.now()),
            None => DistributionsSnapshot::default(),
        };
        drop(recorded);
        (self.with_gauges(counters), distributions)
    }

    fn with_gauges(&self, counters: StatisticsSnapshot) -> StatisticsSnapshot {
        StatisticsSnapshot {
            pending: self.pending.load(Ordering::Relaxed),
            refused: self.refused.each_ref().map(|count| count.load(Ordering::Relaxed)),
            restarts: self.restarts.load(Ordering::Relaxed),
            executions_in_place: self.executions_in_place.load(Ordering::Relaxed),
            ..counters
        }
    }
}

impl RecordedCounts {
    fn add_successes(&mut self, clock: &Clock, requests: impl IntoIterator<Item = RequestRecord>) {
        let Self { counters, distributions } = self;
        match distributions {
            None => requests.into_iter().for_each(|request| counters.add_success(&request)),
            Some(distributions) => {
                let now = clock.now();
                for request in requests {
                    counters.add_success(&request);
                    distributions.succeeded(now, &request);
                }
            }
        }
    }
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

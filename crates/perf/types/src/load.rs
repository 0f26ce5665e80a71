//! Traits of load, clock, counters and metrics, as the measurement needs them.

use std::time::Duration;

use crate::{
    failure::Result,
    record::{CallTotals, Nanos, RequestRecord},
    status::{GpuMetrics, ModelCounters},
};

/// Sends requests in the background and keeps a record of each. The measurement drives it from another thread.
pub trait LoadGenerator {
    /// Sends requests one after the other until `count` have been answered, keeping no records.
    fn warm_up(&mut self, start: LoadStart, count: u64) -> Result<()>;

    /// Starts the load, or changes it. With a `request_count` exactly that many requests are sent, then none.
    fn start(&mut self, start: LoadStart, request_count: Option<u64>) -> Result<()>;

    /// The first error that stopped a worker.
    fn check_health(&self) -> Result<()>;

    /// Requests that have ended since the last `take_records`.
    fn collected(&self) -> u64;

    /// The records since the last call, in any order.
    fn take_records(&mut self) -> Vec<RequestRecord>;

    /// Sums over all calls so far.
    fn call_totals(&self) -> CallTotals;

    /// Starts counting idle time from zero.
    fn reset_idle_time(&mut self);

    /// The time since then in which the workers only waited, averaged over the workers.
    fn idle_time(&self) -> Duration;

    /// Requests sent since the last call.
    fn take_sent_count(&mut self) -> u64;

    /// Returns true once all requests of a `request_count` or of a periodic run are answered.
    fn is_finished(&self) -> bool;

    /// The rate of the custom intervals, in requests per second.
    fn custom_request_rate(&self) -> Option<f64>;

    /// Sends no more requests, waits for those in flight, and ends sequences that are open.
    fn stop(&mut self) -> Result<()>;
}

/// The load to start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadStart {
    /// This many requests are in flight at any time.
    Concurrency(u64),
    /// Requests per second.
    RequestRate(f64),
    /// The intervals of the settings.
    CustomIntervals,
    /// The range and period of the settings.
    Periodic,
}

/// Time, so that tests can have their own.
pub trait Clock {
    /// Nanoseconds since the Unix epoch.
    fn now(&self) -> Nanos;

    /// Returns early, with `false`, when the user interrupts the run.
    fn sleep(&self, duration: Duration) -> bool;

    /// CPU time of this process so far, user and system.
    fn cpu_time(&self) -> Duration;
}

/// The server's own counters.
pub trait ServerStatistics {
    /// Returns counters by name and version: of one model, or of all that the server has (ensembles, BLS).
    fn read(&mut self, all_models: bool) -> Result<Vec<((String, String), ModelCounters)>>;
}

/// GPU gauges, read at intervals in the background.
pub trait MetricsCollector {
    /// Starts reading.
    fn start(&mut self);
    /// The samples since the last call; an error if the last query failed.
    fn take(&mut self) -> Result<Vec<GpuMetrics>>;
    /// Warnings for the user, each once: gauges the server does not have, an interval it cannot keep.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Stops reading.
    fn stop(&mut self);
}

//! Model statistics, Prometheus text, the log and the access log.
//!
//! **Invariants.** No socket and no async runtime: the server of `/metrics` calls [`metrics::render`],
//! and code that logs uses the `log` facade.

#![warn(missing_docs)]

pub mod access_log;
mod calendar;
mod custom;
mod distributions;
mod duration_count;
pub mod families;
mod line_limit;
pub mod lines;
pub mod logger;
pub mod metrics;
mod records;
mod responses;
mod server_load;
mod statistics;

pub use custom::{
    CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind, CustomMetrics, Labels,
};
pub use distributions::{
    Bounds, BoundsError, DistributionSettings, DistributionsSnapshot, Histogram, Histograms,
    RecentDurations, Summary,
};
pub use duration_count::DurationCount;
pub use line_limit::{LineLimit, tell_suppressed};
pub use records::{BatchRecord, CacheHitRecord, RequestRecord};
pub use responses::{MAX_COUNTED_RESPONSES, ResponseOutcome, ResponseRecord, ResponseStatistics};
pub use server_load::{ModelLoad, ReportTexts, ServerCounts, ServerLoad};
pub use statistics::{
    Activity, BatchStatistics, FailureReason, ModelStatistics, Progress, RefusalReason,
    StatisticsSnapshot,
};

//! Model statistics, Prometheus text, and the log format.
//!
//! **Invariants.** No socket and no async runtime: the server of `/metrics` calls [`metrics::render`],
//! and code that logs uses the `log` facade.

#![warn(missing_docs)]

mod custom;
mod distributions;
pub mod logger;
pub mod metrics;
mod records;
mod statistics;

pub use custom::{
    CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind, CustomMetrics, Labels,
};
pub use distributions::{
    Bounds, BoundsError, DistributionSettings, DistributionsSnapshot, Histogram, Histograms,
    Summary,
};
pub use records::{BatchRecord, RequestRecord};
pub use statistics::{
    BatchStatistics, DurationCount, FailureReason, ModelStatistics, RefusalReason,
    StatisticsSnapshot,
};

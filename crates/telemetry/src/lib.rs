//! Model statistics, Prometheus text, and the log format.
//!
//! **Invariants.** No socket and no async runtime: the server of `/metrics` calls [`metrics::render`],
//! and code that logs uses the `log` facade.

#![warn(missing_docs)]

mod custom;
pub mod logger;
pub mod metrics;
mod statistics;

pub use custom::{
    CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind, CustomMetrics, Labels,
};
pub use statistics::{
    BatchRecord, BatchStatistics, DurationCount, FailureReason, ModelStatistics, RequestRecord,
    StatisticsSnapshot,
};

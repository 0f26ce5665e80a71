//! Model statistics, Prometheus text, and the log format.

mod statistics;

pub use statistics::{
    BatchRecord, BatchStatistics, DurationCount, FailureReason, ModelStatistics, RequestRecord,
    StatisticsSnapshot,
};

//! The kinds of metrics that models define.

/// The kind of value that a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomMetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by bucket.
    Histogram,
}

impl CustomMetricKind {
    /// Returns the name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

//! Values of series, which many threads change.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{error::CustomMetricError, kind::CustomMetricKind};

#[derive(Debug)]
pub(super) enum Value {
    Counter(AtomicF64),
    Gauge(AtomicF64),
    Histogram(Histogram),
}

/// Observations by bucket, not cumulated; the last bucket has no upper bound.
#[derive(Debug)]
pub(super) struct Histogram {
    pub bounds: Vec<f64>,
    pub counts: Vec<AtomicU64>,
    pub sum: AtomicF64,
}

impl Value {
    pub fn new(
        kind: CustomMetricKind,
        buckets: Option<Vec<f64>>,
    ) -> Result<Self, CustomMetricError> {
        let value = match (kind, buckets) {
            (CustomMetricKind::Counter, None) => Self::Counter(AtomicF64::default()),
            (CustomMetricKind::Gauge, None) => Self::Gauge(AtomicF64::default()),
            (CustomMetricKind::Histogram, Some(bounds)) => Self::Histogram(Histogram::new(bounds)?),
            (CustomMetricKind::Histogram, None) => {
                return Err(CustomMetricError::NoBuckets);
            }
            (kind, Some(_)) => {
                return Err(CustomMetricError::UnexpectedBuckets(kind));
            }
        };
        Ok(value)
    }
}

impl Histogram {
    fn new(bounds: Vec<f64>) -> Result<Self, CustomMetricError> {
        // A lone NaN has no neighbour to be compared with.
        let is_ascending = bounds.is_sorted_by(|a, b| a < b) && !bounds.iter().any(|b| b.is_nan());
        if !is_ascending {
            return Err(CustomMetricError::UnsortedBuckets);
        }
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { bounds, counts, sum: AtomicF64::default() })
    }

    pub fn observe(&self, seen: f64) {
        // A NaN is below no bound.
        let bucket = self.bounds.partition_point(|&bound| bound < seen || seen.is_nan());
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.add(seen);
    }
}

/// A float stored as its bits: the standard library has no atomic float.
#[derive(Debug, Default)]
pub(super) struct AtomicF64(AtomicU64);

impl AtomicF64 {
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    pub fn add(&self, by: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + by).to_bits());
        // The closure never refuses, so neither does the update.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }
}

//! A series of a family: its labels, and a value that many threads change.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{CustomFamily, CustomMetricError, CustomMetricKind, Labels};

/// A handle of a series. Clones and handles with the same labels share the value; the series is dropped with the last of them.
#[derive(Clone, Debug)]
pub struct CustomMetric(pub(super) Arc<Series>);

#[derive(Debug)]
pub(super) struct Series {
    pub family: Arc<CustomFamily>,
    pub labels: Labels,
    pub value: Value,
}

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

impl CustomMetric {
    /// Adds to a counter or gauge.
    ///
    /// # Errors
    ///
    /// A counter by less than 0; a histogram.
    pub fn increment(&self, by: f64) -> Result<(), CustomMetricError> {
        match &self.0.value {
            Value::Counter(_) if by < 0.0 => Err(CustomMetricError::NegativeIncrement),
            Value::Counter(value) | Value::Gauge(value) => {
                value.add(by);
                Ok(())
            }
            Value::Histogram(_) => Err(self.unsupported("Increment")),
        }
    }

    /// Sets a gauge.
    ///
    /// # Errors
    ///
    /// Anything but a gauge.
    pub fn set(&self, to: f64) -> Result<(), CustomMetricError> {
        let Value::Gauge(value) = &self.0.value else { return Err(self.unsupported("Set")) };
        value.set(to);
        Ok(())
    }

    /// Counts one observation in its bucket.
    ///
    /// # Errors
    ///
    /// Anything but a histogram.
    pub fn observe(&self, seen: f64) -> Result<(), CustomMetricError> {
        let Value::Histogram(value) = &self.0.value else {
            return Err(self.unsupported("Observe"));
        };
        value.observe(seen);
        Ok(())
    }

    /// Returns the labels of the series.
    pub fn labels(&self) -> &Labels {
        &self.0.labels
    }

    /// Returns the value of a counter or gauge.
    ///
    /// # Errors
    ///
    /// A histogram.
    pub fn value(&self) -> Result<f64, CustomMetricError> {
        match &self.0.value {
            Value::Counter(value) | Value::Gauge(value) => Ok(value.get()),
            Value::Histogram(_) => Err(self.unsupported("Value")),
        }
    }

    fn unsupported(&self, operation: &'static str) -> CustomMetricError {
        CustomMetricError::Unsupported { kind: self.0.family.kind, operation }
    }
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

impl Drop for Series {
    fn drop(&mut self) {
        self.family.forget(&self.labels);
    }
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

    fn observe(&self, seen: f64) {
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

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    fn add(&self, by: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + by).to_bits());
        // The closure never refuses, so neither does the update.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }
}

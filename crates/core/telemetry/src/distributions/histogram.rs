//! Observations by bucket.

use std::sync::Arc;

/// Upper bounds of buckets, strictly ascending. The last bucket has none. Clones share them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds(Arc<[f64]>);

/// The reason why numbers cannot be the bounds of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// They do not ascend strictly, or one is no number.
    #[error("each bucket must be larger than the one before it")]
    Unsorted,
    /// There are too many: every bucket is a line of each answer to `/metrics`.
    #[error("{0} buckets are more than the {MOST_BUCKETS} that a histogram may have")]
    TooMany(usize),
}

/// Most bounds of a histogram.
pub(crate) const MOST_BUCKETS: usize = 200;

impl Bounds {
    /// Makes the buckets that end at these values.
    ///
    /// # Errors
    /// They do not ascend strictly, or are too many.
    pub fn new(bounds: &[f64]) -> Result<Self, BoundsError> {
        if bounds.len() > MOST_BUCKETS {
            return Err(BoundsError::TooMany(bounds.len()));
        }
        // A lone NaN has no neighbour to be compared with.
        let is_ascending = bounds.is_sorted_by(|a, b| a < b) && !bounds.iter().any(|b| b.is_nan());
        if is_ascending { Ok(Self(bounds.into())) } else { Err(BoundsError::Unsorted) }
    }

    /// Makes one bucket for everything.
    pub(super) fn none() -> Self {
        Self(Arc::new([]))
    }

    /// Returns the bounds, ascending.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

/// Observations by bucket, and their sum. The owner guards it with a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: Bounds,
    /// Observations by bucket, not cumulated; one more than there are bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// Makes a histogram without observations.
    pub fn new(bounds: Bounds) -> Self {
        let counts = vec![0; bounds.values().len() + 1];
        Self { bounds, counts, sum: 0.0 }
    }

    /// Counts an observation in the bucket of the first bound that is not below it.
    pub fn observe(&mut self, seen: f64) {
        let bucket = self.bounds.0.partition_point(|&bound| bound < seen);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += seen;
    }

    /// Returns the number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all observations.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns each finite bound with the number of observations up to it.
    pub fn cumulated(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        let up_to = self.bounds.0.iter().zip(&self.counts).map(move |(&bound, count)| {
            below += count;
            (bound, below)
        });
        up_to.filter(|(bound, _)| *bound != f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_counts_in_its_bucket_and_all_above() {
        let mut histogram = Histogram::new(Bounds::new(&[-1.0, 0.0, 1.0, 2.5]).expect("ascending"));
        for seen in [-1.0, 0.5, 1.0, 1.5, 9.0] {
            histogram.observe(seen);
        }
        let seen: Vec<_> = histogram.cumulated().collect();
        assert_eq!(seen, [(-1.0, 1), (0.0, 1), (1.0, 3), (2.5, 4)]);
        assert_eq!((histogram.count(), histogram.sum()), (5, 11.0));
    }

    #[test]
    fn an_infinite_bound_adds_no_bucket() {
        let mut histogram = Histogram::new(Bounds::new(&[1.0, f64::INFINITY]).expect("ascending"));
        histogram.observe(3.0);
        assert_eq!(histogram.cumulated().collect::<Vec<_>>(), [(1.0, 0)]);
        assert_eq!(histogram.count(), 1);
    }

    #[test]
    fn bounds_must_ascend_and_their_number_is_limited() {
        for bounds in [&[2.0, 1.0][..], &[1.0, 1.0], &[f64::NAN]] {
            assert_eq!(Bounds::new(bounds), Err(BoundsError::Unsorted));
        }
        let many: Vec<f64> = (0..=MOST_BUCKETS).map(|n| n as f64).collect();
        assert_eq!(Bounds::new(&many), Err(BoundsError::TooMany(MOST_BUCKETS + 1)));
        assert!(Bounds::new(&many[1..]).is_ok());
    }
}

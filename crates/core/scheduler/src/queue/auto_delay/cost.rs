//! Learns the cost of an execution: a fixed part, and a part for each item.

use std::{collections::BTreeMap, time::Duration};

/// The number of executions of one size after which a new one counts 1/16 of the mean.
const MEMORY: f64 = 16.0;

/// Sizes up to this are recorded one by one, larger ones in this many steps per power of two.
const STEPS: u64 = 8;

/// The learned cost: an execution takes `fixed + size * per_item` seconds.
#[derive(Default)]
pub(super) struct ExecutionCost {
    sizes: BTreeMap<u64, Mean>,
    fixed: f64,
}

/// The mean of all executions of about one size.
#[derive(Clone, Copy, Default)]
struct Mean {
    weight: f64,
    items: f64,
    seconds: f64,
}

impl ExecutionCost {
    /// Records the time that an execution of this many items took.
    pub fn note(&mut self, items: u64, took: Duration) {
        let mean = self.sizes.entry(step_of(items)).or_default();
        mean.weight = (mean.weight + 1.0).min(MEMORY);
        mean.items += (items as f64 - mean.items) / mean.weight;
        mean.seconds += (took.as_secs_f64() - mean.seconds) / mean.weight;
        self.fixed = self.fit();
    }

    /// Returns how long a batch of `items` may wait for the next item. Up to this time, waiting executes more items per second
    /// than executing the batch now and the next item separately.
    pub fn worth(&self, items: u64) -> Duration {
        Duration::try_from_secs_f64(self.fixed / items.max(1) as f64).unwrap_or_default()
    }

    /// Returns the fixed part of the line fitted to all sizes; 0 if the fit is below, because batches gain nothing then.
    fn fit(&self) -> f64 {
        let sum = |of: fn(&Mean) -> f64| -> f64 {
            self.sizes.values().map(|mean| mean.weight * of(mean)).sum()
        };
        let weight = sum(|_| 1.0);
        let (items, seconds) = (sum(|mean| mean.items) / weight, sum(|mean| mean.seconds) / weight);
        let variance = sum(|mean| mean.items * mean.items) / weight - items * items;
        let covariance = sum(|mean| mean.items * mean.seconds) / weight - items * seconds;
        let per_item = match self.sizes.len() {
            // With one size known, assumes that the fixed part is as large as that of one item.
            1 => seconds / (items + 1.0),
            _ => covariance / variance,
        };
        let fixed = seconds - per_item * items;
        if fixed.is_finite() { fixed.clamp(0.0, seconds) } else { 0.0 }
    }
}

/// Returns the step of a size. Similar sizes have the same step.
fn step_of(items: u64) -> u64 {
    let octave = (items.max(1) / STEPS).checked_ilog2().map_or(0, |n| n + 1);
    (items >> octave) + u64::from(octave) * STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn worth_ms(cost: &ExecutionCost, items: u64) -> f64 {
        (cost.worth(items).as_secs_f64() * 1e5).round() / 1e2
    }

    #[test]
    fn the_fixed_cost_of_an_execution_is_estimated() {
        let mut cost = ExecutionCost::default();
        assert_eq!(cost.worth(1), Duration::ZERO);
        cost.note(1, MS * 3);
        assert_eq!(worth_ms(&cost, 1), 1.5);
        for _ in 0..3 {
            for size in [8, 1, 4] {
                cost.note(size, MS * (2 + size as u32));
            }
        }
        assert_eq!((worth_ms(&cost, 1), worth_ms(&cost, 4)), (2.0, 0.5));
    }

    #[test]
    fn without_gain_from_batching_no_delay_is_worthwhile() {
        let mut cost = ExecutionCost::default();
        for size in [1, 2, 8] {
            cost.note(size, MS * (size * size) as u32);
        }
        assert_eq!(worth_ms(&cost, 1), 0.0);
    }

    #[test]
    fn estimates_follow_the_model_and_are_bounded() {
        let mut cost = ExecutionCost::default();
        let mut run = |fixed: u32| {
            for _ in 0..200 {
                cost.note(1, MS * (fixed + 1));
                cost.note(8, MS * (fixed + 8));
            }
            worth_ms(&cost, 1)
        };
        assert_eq!((run(5), run(1)), (5.0, 1.0));
        for size in 0..5000 {
            cost.note(size * size * size, MS);
        }
        assert!(cost.sizes.len() < 300, "{}", cost.sizes.len());
        assert!((1..1000).all(|size| step_of(size) <= step_of(size + 1)));
        assert!((1..8).all(|size| step_of(size) < step_of(size + 1)));
        assert_ne!(step_of(u64::MAX), step_of(u64::MAX / 2));
    }
}

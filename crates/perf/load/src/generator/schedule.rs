//! Due times of the requests in the rate modes.

use std::time::Duration;

use fastrand::Rng;

/// The moments at which one worker must send, counted from the start of the load. Never ends.
///
/// All workers step through the same moments and each takes its own in turn. Together they keep the schedule, whatever their
/// number.
#[derive(Clone, Debug)]
pub struct Schedule {
    gaps: Gaps,
    /// Number of moments, of any worker, that have passed.
    passed: u64,
    now: Duration,
    partition: Partition,
}

/// One worker among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    pub index: u64,
    pub of: u64,
}

#[derive(Clone, Debug)]
enum Gaps {
    Constant { rate: f64 },
    Poisson { rate: f64, random: Rng },
    Custom { intervals: Vec<Duration>, position: usize },
}

/// A fixed seed makes the Poisson process the same in each run, so that runs can be compared.
const SEED: u64 = 5489;

impl Schedule {
    /// Returns a schedule of `rate` requests per second, evenly.
    pub fn constant(rate: f64, partition: Partition) -> Self {
        Self::new(Gaps::Constant { rate }, partition)
    }

    /// Returns a schedule of `rate` requests per second on average, with exponential gaps.
    pub fn poisson(rate: f64, partition: Partition) -> Self {
        Self::new(Gaps::Poisson { rate, random: Rng::with_seed(SEED) }, partition)
    }

    /// Returns a schedule that repeats the given gaps. `None`: there are none, or they are all zero.
    pub fn custom(intervals: Vec<Duration>, partition: Partition) -> Option<Self> {
        let any = intervals.iter().any(|interval| !interval.is_zero());
        any.then(|| Self::new(Gaps::Custom { intervals, position: 0 }, partition))
    }

    fn new(gaps: Gaps, partition: Partition) -> Self {
        Self { gaps, passed: 0, now: Duration::ZERO, partition }
    }

    /// Returns the next moment of this worker.
    pub fn next(&mut self) -> Duration {
        loop {
            self.step();
            let turn = (self.passed - 1) % self.partition.of.max(1);
            if turn == self.partition.index {
                return self.now;
            }
        }
    }

    fn step(&mut self) {
        self.passed += 1;
        match &mut self.gaps {
            // Computed from the count, so that rounding does not add up over a long run.
            Gaps::Constant { rate } => self.now = seconds(self.passed as f64 / *rate),
            Gaps::Poisson { rate, random } => {
                // 1 - u is in (0, 1], whose logarithm is finite.
                self.now += seconds(-(1.0 - random.f64()).ln() / *rate);
            }
            Gaps::Custom { intervals, position } => {
                self.now += intervals.get(*position).copied().unwrap_or_default();
                *position = (*position + 1) % intervals.len().max(1);
            }
        }
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX / 2)
}

/// Returns the rate of custom intervals, a whole number as in perf_analyzer; `None` as in [`Schedule::custom`].
pub fn custom_rate(intervals: &[Duration]) -> Option<f64> {
    let total: u128 = intervals.iter().map(Duration::as_nanos).sum();
    let rate = (intervals.len() as u128 * 1_000_000_000).checked_div(total)?;
    Some(rate as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: Partition = Partition { index: 0, of: 1 };

    fn first(mut schedule: Schedule, count: usize) -> Vec<Duration> {
        (0..count).map(|_| schedule.next()).collect()
    }

    #[test]
    fn a_constant_rate_begins_one_period_after_the_start() {
        let moments = first(Schedule::constant(4.0, ALONE), 3);
        assert_eq!(moments, [250, 500, 750].map(Duration::from_millis));
    }

    #[test]
    fn custom_intervals_repeat() {
        let intervals = [1, 5].map(Duration::from_millis).to_vec();
        let schedule = Schedule::custom(intervals, ALONE).unwrap();
        assert_eq!(first(schedule, 5), [1, 6, 7, 12, 13].map(Duration::from_millis));
        assert!(Schedule::custom(vec![], ALONE).is_none());
        assert!(Schedule::custom(vec![Duration::ZERO], ALONE).is_none());
    }

    #[test]
    fn the_rate_of_custom_intervals_is_a_whole_number() {
        let rate = |millis: &[u64]| {
            let intervals: Vec<_> = millis.iter().copied().map(Duration::from_millis).collect();
            custom_rate(&intervals)
        };
        assert_eq!(rate(&[1, 2]), Some(666.0));
        assert_eq!(rate(&[100]), Some(10.0));
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[0]), None);
    }

    #[test]
    fn poisson_gaps_have_exponential_mean_and_spread() {
        let moments = first(Schedule::poisson(1000.0, ALONE), 50_000);
        let gaps: Vec<f64> =
            moments.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1000.0).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "mean {mean} ms");
        assert!((variance.sqrt() - 1.0).abs() < 0.03, "deviation {} ms", variance.sqrt());
    }

    proptest! {
        #[test]
        fn several_workers_keep_the_schedule_of_one(of in 1u64..7, rate in 0.5f64..1e6, kind in 0..3) {
            let make = |partition| match kind {
                0 => Schedule::constant(rate, partition),
                1 => Schedule::poisson(rate, partition),
                _ => {
                    let intervals = [3, 1, 4, 1, 5].map(Duration::from_micros).to_vec();
                    Schedule::custom(intervals, partition).unwrap()
                }
            };
            let mut together: Vec<_> =
                (0..of).flat_map(|index| first(make(Partition { index, of }), 20)).collect();
            together.sort();
            prop_assert_eq!(together, first(make(ALONE), 20 * of as usize));
        }
    }
}

//! Durations over a sliding window of time.

use std::time::{Duration, Instant};

use super::quantiles::{SizeCounts, count_and_mean, quantiles};

/// The longest time that a quantile covers; it covers at least four fifths of it. Triton's Prometheus library has the same.
const LENGTH: Duration = Duration::from_secs(60);
const PARTS: usize = 5;

/// Several series of durations. Each has the quantiles of the last minute, and count and sum since the start.
///
/// The minute has five parts. A duration is counted in the newest part, and the oldest part is dropped as a whole.
#[derive(Clone, Debug)]
pub(super) struct Window<const N: usize> {
    series: [Series; N],
    newest: usize,
    /// The start of the next part.
    next_at: Instant,
}

#[derive(Clone, Debug, Default)]
struct Series {
    count: u64,
    micros: u64,
    parts: [SizeCounts; PARTS],
}

/// A series at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Observations since the start.
    pub count: u64,
    /// Their sum, in microseconds.
    pub micros: u64,
    /// The quantiles of the window, one per quantile that is asked for; `None` when the window is empty.
    pub quantiles: Vec<Option<u64>>,
}

/// The durations in the window of a series, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecentDurations {
    /// The number of durations; more than 0.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them are at most this long.
    pub p50: u64,
    /// Nine of ten are at most this long.
    pub p90: u64,
    /// 99 of 100 are at most this long.
    pub p99: u64,
}

impl Window<1> {
    /// Returns the durations of the one series; `None` when its window is empty.
    pub fn recent(&mut self, now: Instant) -> Option<RecentDurations> {
        self.advance(now);
        let [Series { parts, .. }] = &self.series;
        let (count, mean) = count_and_mean(parts);
        let found = quantiles(parts, &[0.5, 0.9, 0.99]);
        let [p50, p90, p99] = found.try_into().ok()?;
        Some(RecentDurations { count, mean, p50: p50?, p90: p90?, p99: p99? })
    }
}

impl<const N: usize> Window<N> {
    pub fn new(now: Instant) -> Self {
        let series = std::array::from_fn(|_| Series::default());
        Self { series, newest: 0, next_at: now + LENGTH / PARTS as u32 }
    }

    /// Records a duration for each series.
    pub fn observe(&mut self, now: Instant, seen: [Duration; N]) {
        self.observe_some(now, seen.map(Some));
    }

    /// Records a duration for some of the series.
    pub fn observe_some(&mut self, now: Instant, seen: [Option<Duration>; N]) {
        self.advance(now);
        for (series, duration) in self.series.iter_mut().zip(seen) {
            let Some(duration) = duration else { continue };
            let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            series.count += 1;
            series.micros = series.micros.saturating_add(micros);
            if let Some(part) = series.parts.get_mut(self.newest) {
                part.observe(micros);
            }
        }
    }

    pub fn summaries(&mut self, now: Instant, wanted: &[f64]) -> [Summary; N] {
        self.advance(now);
        self.series.each_ref().map(|Series { count, micros, parts }| Summary {
            count: *count,
            micros: *micros,
            quantiles: quantiles(parts, wanted),
        })
    }

    /// Starts the parts that are due. After a long pause all parts are empty.
    fn advance(&mut self, now: Instant) {
        for _ in 0..PARTS {
            if now < self.next_at {
                return;
            }
            self.newest = (self.newest + 1) % PARTS;
            for series in &mut self.series {
                if let Some(part) = series.parts.get_mut(self.newest) {
                    part.clear();
                }
            }
            self.next_at += LENGTH / PARTS as u32;
        }
        if now >= self.next_at {
            self.next_at = now + LENGTH / PARTS as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn median(window: &mut Window<1>, now: Instant) -> Option<u64> {
        let [summary] = window.summaries(now, &[0.5]);
        summary.quantiles[0]
    }

    #[test]
    fn a_duration_leaves_the_window_after_a_minute_but_stays_in_the_total() {
        let start = Instant::now();
        let mut window = Window::<1>::new(start);
        window.observe(start, [Duration::from_micros(7)]);
        assert_eq!(median(&mut window, start + 59 * SECOND), Some(7));
        window.observe(start + 59 * SECOND, [Duration::from_micros(20)]);
        assert_eq!(median(&mut window, start + 61 * SECOND), Some(20));
        assert_eq!(median(&mut window, start + 107 * SECOND), Some(20));
        assert_eq!(median(&mut window, start + 108 * SECOND), None);
        let [summary] = window.summaries(start + 109 * SECOND, &[]);
        assert_eq!((summary.count, summary.micros), (2, 27));
    }

    #[test]
    fn durations_in_the_window_are_summarized() {
        let start = Instant::now();
        let mut window = Window::<1>::new(start);
        assert_eq!(window.recent(start), None);
        for micros in 1..=50 {
            window.observe(start, [Duration::from_micros(micros)]);
        }
        let recent = RecentDurations { count: 50, mean: 25.5, p50: 25, p90: 45, p99: 50 };
        assert_eq!(window.recent(start + 30 * SECOND), Some(recent));
        assert_eq!(window.recent(start + 61 * SECOND), None);
    }

    #[test]
    fn a_long_pause_empties_the_window() {
        let start = Instant::now();
        let mut window = Window::<1>::new(start);
        window.observe(start, [SECOND]);
        let later = start + 86_400 * SECOND;
        assert_eq!(median(&mut window, later), None);
        window.observe(later, [Duration::from_micros(3)]);
        assert_eq!(median(&mut window, later + 59 * SECOND), Some(3));
        assert_eq!(median(&mut window, later + 61 * SECOND), None);
    }

    #[test]
    fn timestamps_before_the_window_are_accepted() {
        let start = Instant::now() + 100 * SECOND;
        let mut window = Window::<1>::new(start);
        window.observe(start - 50 * SECOND, [Duration::from_micros(9)]);
        assert_eq!(median(&mut window, start), Some(9));
    }
}

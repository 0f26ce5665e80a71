//! Estimates the usual time until the next request while requests are expected.

use std::time::{Duration, Instant};

/// The factor by which each request changes the estimate.
const STEP: f64 = 1.5;

/// The shortest gap that is counted, in seconds.
const SHORTEST: f64 = 1e-6;

/// A rough median of the last gaps. A single long gap among short ones, as between the answers of two batches, changes it
/// little.
#[derive(Default)]
pub(super) struct ArrivalGaps {
    /// In seconds.
    usual: Option<f64>,
    /// The time of the last request or answer.
    since: Option<Instant>,
    /// True if more requests were expected after that.
    was_expecting: bool,
}

impl ArrivalGaps {
    /// Records a request. `is_expecting` is true if more requests are expected.
    pub fn arrived(&mut self, at: Instant, is_expecting: bool) {
        if let Some(since) = self.since
            && self.was_expecting
        {
            self.note(at.saturating_duration_since(since));
        }
        (self.since, self.was_expecting) = (Some(at), is_expecting);
    }

    /// Records that requests were answered. `is_expecting` as for [`ArrivalGaps::arrived`].
    pub fn answered(&mut self, at: Instant, is_expecting: bool) {
        (self.since, self.was_expecting) = (Some(at), is_expecting);
    }

    /// Returns the time of the last request or answer.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    pub fn usual(&self) -> Option<Duration> {
        self.usual.map(|usual| Duration::try_from_secs_f64(usual).unwrap_or_default())
    }

    fn note(&mut self, gap: Duration) {
        let gap = gap.as_secs_f64().max(SHORTEST);
        self.usual = Some(match self.usual {
            None => gap,
            Some(usual) if gap > usual => (usual * STEP).min(gap),
            Some(usual) => (usual / STEP).max(gap),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn rare_long_gaps_are_ignored() {
        let mut gaps = ArrivalGaps::default();
        let mut now = Instant::now();
        assert_eq!(gaps.usual(), None);
        let mut run = |gap: u32, every: u32, other: u32| {
            for n in 1..100 {
                now += US * if n % every == 0 { other } else { gap };
                gaps.arrived(now, true);
            }
            gaps.usual().expect("known").as_micros()
        };
        assert!((45..=110).contains(&run(50, 8, 10_000)));
        assert!((6_000..=10_000).contains(&run(10_000, 8, 50)));
        assert!((90..=110).contains(&run(100, 200, 1)));
    }

    #[test]
    fn gaps_count_only_while_callers_are_missing() {
        let mut gaps = ArrivalGaps::default();
        let now = Instant::now();
        gaps.arrived(now, false);
        gaps.arrived(now + US * 10_000, true);
        assert_eq!(gaps.usual(), None);
        gaps.answered(now + US * 20_000, true);
        gaps.arrived(now + US * 20_100, false);
        assert_eq!(gaps.usual(), Some(US * 100));
    }
}

//! How long it usually takes until the next request comes, while somebody is missing.

use std::time::{Duration, Instant};

/// By so much the guess changes with each request.
const STEP: f64 = 1.5;

/// Gaps are taken to be no shorter.
const SHORTEST: f64 = 1e-6;

/// The median of the last gaps, roughly: one long gap among short ones, as between the answers of two batches, says nothing of
/// the short ones.
#[derive(Default)]
pub(super) struct ArrivalGaps {
    /// In seconds.
    usual: Option<f64>,
    /// The last request or answer.
    since: Option<Instant>,
    /// Whether somebody was missing after that.
    was_expecting: bool,
}

impl ArrivalGaps {
    /// A request has come. `is_expecting`: somebody is missing.
    pub fn arrived(&mut self, at: Instant, is_expecting: bool) {
        if let Some(since) = self.since
            && self.was_expecting
        {
            self.note(at.saturating_duration_since(since));
        }
        (self.since, self.was_expecting) = (Some(at), is_expecting);
    }

    /// Requests were answered. `is_expecting`: as above.
    pub fn answered(&mut self, at: Instant, is_expecting: bool) {
        (self.since, self.was_expecting) = (Some(at), is_expecting);
    }

    /// The last request or answer.
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
    fn long_gaps_among_short_ones_do_not_count() {
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
    fn gaps_count_while_somebody_is_missing() {
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

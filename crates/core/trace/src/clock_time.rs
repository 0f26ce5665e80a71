//! Instants as numbers of the machine's monotonic clock.

use std::time::Instant;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The relation between an [`Instant`] and the machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockTime {
    instant: Instant,
    ns: i128,
}

impl ClockTime {
    /// Relates the clock to `now`, the present instant.
    pub fn new(now: Instant) -> Self {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
        Self { instant: now, ns: i128::from(tv_sec) * 1_000_000_000 + i128::from(tv_nsec) }
    }

    /// Returns the nanoseconds that the clock shows at `instant`.
    pub fn ns(&self, instant: Instant) -> u64 {
        let after = instant.saturating_duration_since(self.instant).as_nanos();
        let before = self.instant.saturating_duration_since(instant).as_nanos();
        let signed = |ns: u128| i128::try_from(ns).unwrap_or(0);
        u64::try_from(self.ns + signed(after) - signed(before)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn instants_keep_their_distances() {
        let now = Instant::now();
        let time = ClockTime::new(now);
        let step = Duration::from_nanos(1500);
        assert_eq!(time.ns(now + step) - time.ns(now), 1500);
        assert_eq!(time.ns(now) - time.ns(now - step), 1500);
        assert!(time.ns(now) > 0);
    }
}

//! Instants as numbers of the machine's monotonic clock.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The relation between an [`Instant`] and the machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockTime {
    instant: Instant,
    ns: u64,
}

impl ClockTime {
    /// Relates the clock to `now`, the present instant.
    pub fn new(now: Instant) -> Self {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
        let ns = i128::from(tv_sec) * 1_000_000_000 + i128::from(tv_nsec);
        Self { instant: now, ns: u64::try_from(ns).unwrap_or(0) }
    }

    /// Returns the nanoseconds that the clock shows at `instant`.
    pub fn ns(&self, instant: Instant) -> u64 {
        match instant.checked_duration_since(self.instant) {
            Some(after) => self.ns.saturating_add(nanoseconds(after)),
            None => self.ns.saturating_sub(nanoseconds(self.instant.duration_since(instant))),
        }
    }
}

/// Returns the nanoseconds of a duration, up to five hundred years.
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
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

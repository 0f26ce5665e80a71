//! Measures how long an instance has been busy: one number, written when its work begins and ends, with the instants that
//! are recorded for the statistics anyway.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// The time that one instance has been busy since it was created. One thread at a time updates it; any thread may read it.
#[derive(Debug)]
pub(crate) struct BusyTime {
    epoch: Instant,
    /// Twice a number of nanoseconds, plus 1 while busy. The number is the idle time so far while busy, and the
    /// busy time so far while idle: it does not change meanwhile, so one read always gives a consistent value.
    state: AtomicU64,
}

impl BusyTime {
    /// Creates an idle state. No instant may be before `epoch`.
    pub fn new(epoch: Instant) -> Self {
        Self { epoch, state: AtomicU64::new(0) }
    }

    /// Begins work at this instant, unless the instance is already busy.
    pub fn begin(&self, at: Instant) {
        let (is_busy, busy) = parts(self.state.load(Ordering::Relaxed));
        if !is_busy {
            let idle = self.since_epoch(at).saturating_sub(busy);
            self.state.store(idle << 1 | 1, Ordering::Relaxed);
        }
    }

    /// Ends work at this instant, unless the instance is already idle.
    pub fn end(&self, at: Instant) {
        let (is_busy, idle) = parts(self.state.load(Ordering::Relaxed));
        if is_busy {
            self.state.store(self.since_epoch(at).saturating_sub(idle) << 1, Ordering::Relaxed);
        }
    }

    /// Returns the busy time until `now`, including work in progress.
    pub fn until(&self, now: Instant) -> Duration {
        let busy = match parts(self.state.load(Ordering::Relaxed)) {
            (true, idle) => self.since_epoch(now).saturating_sub(idle),
            (false, busy) => busy,
        };
        Duration::from_nanos(busy)
    }

    fn since_epoch(&self, at: Instant) -> u64 {
        let nanos = at.saturating_duration_since(self.epoch).as_nanos();
        // One bit is used as the flag; the rest is enough for 292 years.
        u64::try_from(nanos).unwrap_or(u64::MAX).min(u64::MAX >> 1)
    }
}

fn parts(state: u64) -> (bool, u64) {
    (state & 1 == 1, state >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_grows_only_during_work() {
        let epoch = Instant::now();
        let at = |ms| epoch + Duration::from_millis(ms);
        let busy = BusyTime::new(epoch);
        let told = |ms| busy.until(at(ms)).as_millis();
        assert_eq!(told(100), 0);
        busy.begin(at(100));
        assert_eq!((told(100), told(150), told(10_100)), (0, 50, 10_000));
        busy.begin(at(150));
        busy.end(at(200));
        assert_eq!((told(200), told(900)), (100, 100), "it had begun before");
        busy.end(at(800));
        busy.begin(at(1000));
        busy.end(at(1001));
        assert_eq!(told(2000), 101);
        // Instants of other threads may be a little older than those that were told.
        busy.begin(at(3000));
        assert_eq!(told(2999), 100);
        busy.end(at(2999));
        assert_eq!(told(4000), 100);
    }
}

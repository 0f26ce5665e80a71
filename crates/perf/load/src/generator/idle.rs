//! Time in which a worker thread was idle.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::records::nanos;

/// Time that a worker's thread spent parked, waiting for the network or the clock.
///
/// perf_analyzer counts the time inside calls, sending included, as idle; here only waiting counts. In the rest of a window the
/// thread ran, or wanted to run without getting a CPU. A large rest is a reliable sign that the tool itself is the limit.
#[derive(Debug)]
pub struct IdleClock {
    start: Instant,
    /// Nanoseconds of finished periods.
    total: AtomicU64,
    /// Nanoseconds from `start` plus one; zero while the thread runs.
    parked_at: AtomicU64,
}

impl IdleClock {
    pub fn new() -> Self {
        Self { start: Instant::now(), total: AtomicU64::new(0), parked_at: AtomicU64::new(0) }
    }

    pub fn park(&self, now: Instant) {
        self.parked_at.store(self.mark(now), Ordering::Relaxed);
    }

    pub fn unpark(&self, now: Instant) {
        let parked_at = self.parked_at.swap(0, Ordering::Relaxed);
        if parked_at > 0 {
            self.total.fetch_add(self.mark(now).saturating_sub(parked_at), Ordering::Relaxed);
        }
    }

    /// Returns the idle time since the worker began, with the period that has not ended.
    pub fn idle(&self, now: Instant) -> Duration {
        let parked_at = self.parked_at.load(Ordering::Relaxed);
        let open = if parked_at > 0 { self.mark(now).saturating_sub(parked_at) } else { 0 };
        Duration::from_nanos(self.total.load(Ordering::Relaxed) + open)
    }

    /// Returns the mark of a moment, which is never zero.
    fn mark(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.start)) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_only_while_parked() {
        let clock = IdleClock::new();
        let at = |seconds| clock.start + Duration::from_secs(seconds);
        let idle_at = |seconds| clock.idle(at(seconds)).as_secs();
        clock.unpark(at(1));
        assert_eq!(idle_at(2), 0);
        clock.park(at(3));
        assert_eq!((idle_at(3), idle_at(5)), (0, 2));
        clock.unpark(at(7));
        assert_eq!((idle_at(7), idle_at(9)), (4, 4));
        clock.park(at(10));
        assert_eq!(idle_at(11), 5);
        clock.unpark(at(12));
        assert_eq!(idle_at(20), 6);
    }
}

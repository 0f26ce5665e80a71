//! How long a worker thread had nothing to do.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::records::nanos;

/// Time that a worker's thread spent parked, waiting for the network or the clock.
///
/// perf_analyzer counts the time inside calls, sending included, as idle; here only waiting is. What is left of a
/// window is the time in which the thread ran or wanted to run and did not get a CPU: its part of the window is a
/// reliable sign of a tool that is itself the limit.
#[derive(Debug)]
pub struct IdleClock {
    start: Instant,
    /// Nanoseconds, finished periods only.
    total: AtomicU64,
    /// Nanoseconds from `start` plus one; zero while the thread runs.
    parked_at: AtomicU64,
}

impl IdleClock {
    pub fn new() -> Self {
        Self { start: Instant::now(), total: AtomicU64::new(0), parked_at: AtomicU64::new(0) }
    }

    pub fn park(&self) {
        self.parked_at.store(self.now() + 1, Ordering::Relaxed);
    }

    pub fn unpark(&self) {
        let parked_at = self.parked_at.swap(0, Ordering::Relaxed);
        if parked_at > 0 {
            self.total.fetch_add((self.now() + 1).saturating_sub(parked_at), Ordering::Relaxed);
        }
    }

    /// Since the worker began, the period that has not ended included.
    pub fn idle(&self) -> Duration {
        let parked_at = self.parked_at.load(Ordering::Relaxed);
        let open = if parked_at > 0 { (self.now() + 1).saturating_sub(parked_at) } else { 0 };
        Duration::from_nanos(self.total.load(Ordering::Relaxed) + open)
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parked_time_counts() {
        let clock = IdleClock::new();
        clock.unpark();
        assert_eq!(clock.idle(), Duration::ZERO);
        clock.park();
        let open = clock.idle();
        while clock.idle() == open {}
        clock.unpark();
        let closed = clock.idle();
        assert!(closed > open && closed <= clock.start.elapsed());
        while clock.start.elapsed() < closed * 2 {}
        assert_eq!(clock.idle(), closed);
    }
}

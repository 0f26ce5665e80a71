//! Computes the wait before an instance is restarted.

use std::time::{Duration, Instant};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// An instance that worked this many times longer than the next wait is stable.
const STABLE_FACTOR: u32 = 10;
/// An instance that worked this long is stable.
const STABLE_TIME: Duration = Duration::from_secs(10);

/// The waits between restarts of one instance: none the first time, then longer and longer. An instance that cannot be
/// started, or breaks right after its start, must not keep the machine busy.
pub(crate) struct RestartBackoff {
    next: Duration,
    started_at: Instant,
}

impl RestartBackoff {
    pub fn new(now: Instant) -> Self {
        Self { next: Duration::ZERO, started_at: now }
    }

    pub fn started(&mut self, now: Instant) {
        self.started_at = now;
    }

    /// Returns the wait for an instance that broke now.
    pub fn after_break(&mut self, now: Instant) -> Duration {
        let worked = now.saturating_duration_since(self.started_at);
        if worked >= (self.next * STABLE_FACTOR).min(STABLE_TIME) {
            self.next = Duration::ZERO;
        }
        self.after_failure()
    }

    /// Returns the wait for an instance that could not be started.
    pub fn after_failure(&mut self) -> Duration {
        let next = (self.next * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        std::mem::replace(&mut self.next, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits before each restart of an instance that works for these times.
    fn waits(working_times: &[Duration]) -> Vec<u128> {
        let mut now = Instant::now();
        let mut backoff = RestartBackoff::new(now);
        let break_down = |&worked: &Duration| {
            now += worked;
            let wait = backoff.after_break(now);
            now += wait;
            backoff.started(now);
            wait.as_millis()
        };
        working_times.iter().map(break_down).collect()
    }

    #[test]
    fn the_first_restart_is_immediate() {
        assert_eq!(waits(&[Duration::ZERO]), [0]);
        let daily = Duration::from_secs(86400);
        assert_eq!(waits(&[daily; 4]), [0; 4]);
        assert_eq!(waits(&[Duration::from_secs(2); 4]), [0; 4]);
    }

    #[test]
    fn repeated_failures_double_the_wait_up_to_a_maximum() {
        let short = Duration::from_millis(50);
        let expected = [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
        assert_eq!(waits(&[short; 10]), expected);
    }

    #[test]
    fn a_long_healthy_period_resets_the_wait() {
        let short = Duration::from_millis(50);
        assert_eq!(waits(&[short, short, short, STABLE_TIME, short]), [0, 100, 200, 0, 100]);
    }

    #[test]
    fn failed_starts_double_the_wait_too() {
        let now = Instant::now();
        let mut backoff = RestartBackoff::new(now);
        let waits = [backoff.after_break(now), backoff.after_failure(), backoff.after_failure()];
        assert_eq!(waits.map(|w| w.as_millis()), [0, 100, 200]);
        // Started at last, but it breaks at once.
        backoff.started(now);
        assert_eq!(backoff.after_break(now).as_millis(), 400);
    }
}

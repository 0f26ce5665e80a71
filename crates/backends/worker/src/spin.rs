//! Waits for a reply without sleeping, when that is faster.

use std::{sync::OnceLock, thread, time::Duration};

/// The time that the instance thread may poll for a reply before it sleeps.
///
/// A core that has gone idle takes longer to wake than a small model takes to answer, so as long as replies
/// come quickly the thread polls for them, yielding the core to other threads. After a few slow replies it sleeps
/// at once, and polls again only now and then.
/// Measured in docs/adr/0006-python-workers.md.
#[derive(Debug, Default)]
pub(crate) struct SpinLimit {
    /// Replies in a row that took longer than the budget.
    misses: u32,
}

const BUDGET: Duration = Duration::from_micros(100);
/// Misses after which the thread no longer spins.
const MAX_MISSES: u32 = 4;
/// After that it spins once in this many replies.
const RETRY_INTERVAL: u32 = 64;

impl SpinLimit {
    /// Returns how long to spin for the next reply.
    pub fn budget(&self) -> Duration {
        let is_worth_it = self.misses < MAX_MISSES || self.misses.is_multiple_of(RETRY_INTERVAL);
        if is_worth_it && has_cores() { BUDGET } else { Duration::ZERO }
    }

    /// Records how long the reply took.
    pub fn record(&mut self, waited: Duration) {
        self.misses = if waited <= BUDGET { 0 } else { self.misses.saturating_add(1) };
    }
}

/// Returns true with several cores. On one core, spinning keeps the worker from running.
fn has_cores() -> bool {
    static HAS_CORES: OnceLock<bool> = OnceLock::new();
    *HAS_CORES.get_or_init(|| thread::available_parallelism().is_ok_and(|n| n.get() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_replies_stop_spinning_and_a_fast_one_resumes_it() {
        let mut spin = SpinLimit::default();
        let first = spin.budget();
        assert_eq!(first.is_zero(), !has_cores());
        (0..MAX_MISSES).for_each(|_| spin.record(BUDGET * 2));
        assert!(spin.budget().is_zero());
        (MAX_MISSES..RETRY_INTERVAL).for_each(|_| spin.record(BUDGET * 2));
        assert_eq!(spin.budget(), first, "it retries");
        spin.record(BUDGET * 2);
        assert!(spin.budget().is_zero());
        spin.record(BUDGET / 2);
        assert_eq!(spin.budget(), first);
    }
}

use std::{sync::OnceLock, thread, time::Duration};

/// How long the instance thread looks for a reply before it sleeps.
///
/// A core that has gone idle takes longer to wake than a small model takes to answer, so as long as replies
/// come quickly they are waited for awake. Whoever else wants the core gets it meanwhile (the thread yields),
/// and after a few replies that took longer nothing is waited for any more, but for a look now and then.
/// Measured in docs/adr/0006-python-workers.md.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    /// Replies in a row that came too late to be worth it.
    misses: u32,
}

const BUDGET: Duration = Duration::from_micros(100);
/// Misses after which it no longer waits awake.
const PATIENCE: u32 = 4;
/// Then it tries again once in so many replies.
const LOOK_AGAIN: u32 = 64;

impl Spin {
    /// For the next reply.
    pub fn budget(&self) -> Duration {
        let is_worth_it = self.misses < PATIENCE || self.misses.is_multiple_of(LOOK_AGAIN);
        if is_worth_it && has_cores() { BUDGET } else { Duration::ZERO }
    }

    /// How long the reply took.
    pub fn note(&mut self, waited: Duration) {
        self.misses = if waited <= BUDGET { 0 } else { self.misses.saturating_add(1) };
    }
}

/// With one core, whoever is awake keeps the worker from running.
fn has_cores() -> bool {
    static HAS_CORES: OnceLock<bool> = OnceLock::new();
    *HAS_CORES.get_or_init(|| thread::available_parallelism().is_ok_and(|n| n.get() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_replies_end_it_and_a_quick_one_brings_it_back() {
        let mut spin = Spin::default();
        let first = spin.budget();
        assert_eq!(first.is_zero(), !has_cores());
        (0..PATIENCE).for_each(|_| spin.note(BUDGET * 2));
        assert!(spin.budget().is_zero());
        (PATIENCE..LOOK_AGAIN).for_each(|_| spin.note(BUDGET * 2));
        assert_eq!(spin.budget(), first, "it looks again");
        spin.note(BUDGET * 2);
        assert!(spin.budget().is_zero());
        spin.note(BUDGET / 2);
        assert_eq!(spin.budget(), first);
    }
}

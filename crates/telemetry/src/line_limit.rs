//! How many lines of one kind the log gets, so that what happens under load cannot flood it.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use galatea_types::LockExt;

/// How long a period is.
pub const PERIOD: Duration = Duration::from_secs(1);
/// Most lines in a period.
pub const MAX_LINES: u32 = 10;

/// Admits a few lines per second, and counts the others.
#[derive(Debug)]
pub struct LineLimit(Mutex<Recent>);

/// What was logged in the current period.
#[derive(Debug)]
struct Recent {
    period_ends_at: Instant,
    lines: u32,
    suppressed: u64,
}

impl LineLimit {
    /// Nothing was logged yet.
    pub fn new() -> Self {
        Self(Mutex::new(Recent { period_ends_at: Instant::now(), lines: 0, suppressed: 0 }))
    }

    /// Whether another line may be logged now; and then, how many were suppressed before it.
    pub fn admit(&self) -> Option<u64> {
        self.0.lock_unpoisoned().admit(Instant::now())
    }

    /// How many lines were suppressed that nobody was told of, where a line about them is due: the flood is over.
    pub fn take_suppressed(&self) -> Option<u64> {
        self.0.lock_unpoisoned().take_suppressed(Instant::now())
    }
}

impl Default for LineLimit {
    fn default() -> Self {
        Self::new()
    }
}

impl Recent {
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now >= self.period_ends_at {
            (self.period_ends_at, self.lines) = (now + PERIOD, 0);
        }
        if self.lines >= MAX_LINES {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }

    fn take_suppressed(&mut self, now: Instant) -> Option<u64> {
        let is_due = self.suppressed > 0 && now >= self.period_ends_at;
        is_due.then(|| std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_few_lines_and_the_next_one_counts_the_rest() {
        let start = Instant::now();
        let mut recent = Recent { period_ends_at: start, lines: 0, suppressed: 0 };
        let admitted = (0..MAX_LINES + 5).filter_map(|_| recent.admit(start)).collect::<Vec<_>>();
        assert_eq!(admitted, vec![0; MAX_LINES as usize]);
        assert_eq!(recent.admit(start + PERIOD / 2), None);
        assert_eq!(recent.admit(start + PERIOD), Some(6));
        assert_eq!(recent.admit(start + PERIOD), Some(0));
    }

    #[test]
    fn what_was_suppressed_is_told_once_the_flood_is_over() {
        let start = Instant::now();
        let mut recent = Recent { period_ends_at: start, lines: 0, suppressed: 0 };
        let admitted = (0..MAX_LINES + 3).filter_map(|_| recent.admit(start)).count();
        assert_eq!(admitted, MAX_LINES as usize);
        assert_eq!(recent.take_suppressed(start + PERIOD / 2), None);
        assert_eq!(recent.take_suppressed(start + PERIOD), Some(3));
        assert_eq!(recent.take_suppressed(start + PERIOD * 2), None);
    }
}

//! The usual duration of a model's runs.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Recent duration of a run, smoothed; zero before the first.
#[derive(Debug, Default)]
pub struct TypicalDuration(AtomicU64);

impl TypicalDuration {
    /// Returns true if runs are shorter than `limit`.
    pub fn is_below(&self, limit: Duration) -> bool {
        self.0.load(Ordering::Relaxed) < nanos(limit)
    }

    /// Records the duration of a run.
    pub fn note(&self, took: Duration) {
        let (before, now) = (self.0.load(Ordering::Relaxed), nanos(took));
        let smoothed = if before == 0 { now } else { before - before / 8 + now / 8 };
        self.0.store(smoothed, Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

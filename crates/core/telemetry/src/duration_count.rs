//! A number of events and their total duration.

use std::time::Duration;

/// A number of events and their total duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCount {
    /// The number of events.
    pub count: u64,
    /// Their total duration in nanoseconds.
    pub ns: u64,
}

impl DurationCount {
    /// Adds `count` events that took `duration` together.
    pub fn add(&mut self, count: u64, duration: Duration) {
        self.count += count;
        self.ns += u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    }
}

//! How often something happened, and how long it took.

use std::time::Duration;

/// How often something happened and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCount {
    /// How often.
    pub count: u64,
    /// Nanoseconds in all.
    pub ns: u64,
}

impl DurationCount {
    /// Adds `count` events that took `duration` together.
    pub fn add(&mut self, count: u64, duration: Duration) {
        self.count += count;
        self.ns += u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    }
}

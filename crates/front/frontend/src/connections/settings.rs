//! The limit on the number of connections, and the time-outs.

use std::time::Duration;

/// The time-out and the least bytes a second of bodies and responses while memory is short.
const IMPATIENT: (Duration, u64) = (Duration::from_secs(5), 64 << 10);

/// The limit on the number of connections, and their time-outs. [`Duration::MAX`] means no time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// `--max-connections`: the most connections of all front ends together.
    pub max_connections: usize,
    /// The part of `max_connections` that only the metrics endpoint may use.
    pub reserved_connections: usize,
    /// The time from its first byte in which the head of a request, or the preface of a connection, must be complete.
    pub head_timeout: Duration,
    /// The window in which a body or response in transfer must make progress.
    pub progress_timeout: Duration,
    /// The least bytes a second within that window.
    pub min_bytes_per_second: u64,
    /// The time after which a connection without requests is closed.
    pub idle_timeout: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            max_connections: 8192,
            reserved_connections: 16,
            head_timeout: Duration::from_secs(20),
            progress_timeout: Duration::from_secs(30),
            min_bytes_per_second: 256,
            idle_timeout: Duration::from_secs(600),
        }
    }
}

impl ConnectionSettings {
    /// Returns the settings for a process that may open `descriptors` files. A quarter of them, and no fewer than 64,
    /// stay reserved for model files, workers and shared memory.
    pub fn for_descriptors(descriptors: usize) -> Self {
        let default = Self::default();
        let kept_back = (descriptors / 4).max(64);
        let free = descriptors.saturating_sub(kept_back).max(1);
        let max_connections = free.min(default.max_connections);
        let reserved_connections = default.reserved_connections.min(max_connections / 4);
        Self { max_connections, reserved_connections, ..default }
    }

    /// Returns the settings while memory is short: a slow client holds memory for which other requests are refused.
    pub(super) fn impatient(self) -> Self {
        Self {
            progress_timeout: self.progress_timeout.min(IMPATIENT.0),
            min_bytes_per_second: self.min_bytes_per_second.max(IMPATIENT.1),
            ..self
        }
    }

    /// Returns the interval between sweeps, short enough for the shortest time-out.
    pub(super) fn sweep_interval(&self) -> Duration {
        let shortest = self.head_timeout.min(self.progress_timeout).min(self.idle_timeout);
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}

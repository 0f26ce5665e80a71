//! How many connections there may be, and how patient the server is.

use std::time::Duration;

/// The time-out, and the bytes a second, of bodies and responses while memory is short.
const IMPATIENT: (Duration, u64) = (Duration::from_secs(5), 64 << 10);

/// How many connections there may be and how patient the server is. A time-out of [`Duration::MAX`] is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// `--max-connections`: connections of all front ends together.
    pub max_connections: usize,
    /// Of these, how many only the endpoint of the metrics may have.
    pub reserved_connections: usize,
    /// The head of a request, or what opens a connection, must be complete so long after its first byte.
    pub head_timeout: Duration,
    /// Within so long the client must send, or read, some bytes of a body that is under way ...
    pub progress_timeout: Duration,
    /// ... this many a second at least.
    pub min_bytes_per_second: u64,
    /// A connection without requests is closed after so long.
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
    /// Those of a process that may have `descriptors` open: a quarter, and no fewer than 64, are kept back for model
    /// files, workers and shared memory.
    pub fn for_descriptors(descriptors: usize) -> Self {
        let default = Self::default();
        let kept_back = (descriptors / 4).max(64);
        let free = descriptors.saturating_sub(kept_back).max(1);
        let max_connections = free.min(default.max_connections);
        let reserved_connections = default.reserved_connections.min(max_connections / 4);
        Self { max_connections, reserved_connections, ..default }
    }

    /// While memory is short: a client that sends or reads slowly holds what others are refused for.
    pub(super) fn impatient(self) -> Self {
        Self {
            progress_timeout: self.progress_timeout.min(IMPATIENT.0),
            min_bytes_per_second: self.min_bytes_per_second.max(IMPATIENT.1),
            ..self
        }
    }

    /// How often connections are looked at: often enough for the shortest time-out.
    pub(super) fn sweep_interval(&self) -> Duration {
        let shortest = self.head_timeout.min(self.progress_timeout).min(self.idle_timeout);
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}

//! The limits on connections, and the choice of connections to close.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use galatea_types::{MemoryBudget, MemoryReservation};
use tokio::time::Instant;

use super::{
    activity::{Activity, CloseReason, Framing},
    registry::{Registry, Slot},
    settings::ConnectionSettings,
};
use crate::repeated_log::RepeatedLog;

/// The approximate memory of a connection that transfers nothing: its tasks, a short buffer, its socket's registration
/// and the remains of its last request.
const CONNECTION_BYTES: usize = 24 << 10;

/// The longest wait for the end of a connection that is closed to make room.
const CLOSING: Duration = Duration::from_secs(1);

/// The connections of a server and their limits. There is one per server, which all front ends share.
#[derive(Debug)]
pub struct ConnectionLimits {
    settings: ConnectionSettings,
    memory: Arc<MemoryBudget>,
    start: Instant,
    /// Milliseconds since `start`, advanced by the sweep and by each new connection.
    clock: Arc<AtomicU64>,
    registry: Arc<Registry>,
    refused: RepeatedLog,
    made_room: RepeatedLog,
    overdue: [RepeatedLog; 3],
    idle: AtomicU64,
}

/// Numbers of refused and closed connections since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections refused because all places were taken and no connection was idle.
    pub refused: u64,
    /// Closed connections by reason.
    pub closed: [(&'static str, u64); 5],
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self::with(ConnectionSettings::default(), MemoryBudget::unlimited())
    }
}

impl ConnectionLimits {
    /// Returns limits with these settings. While little of `memory` is left, slow bodies and responses, which hold
    /// memory, time out sooner.
    pub fn new(settings: ConnectionSettings, memory: Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self::with(settings, memory))
    }

    fn with(settings: ConnectionSettings, memory: Arc<MemoryBudget>) -> Self {
        Self {
            settings,
            memory,
            start: Instant::now(),
            clock: Arc::default(),
            registry: Arc::default(),
            refused: RepeatedLog::default(),
            made_room: RepeatedLog::default(),
            overdue: Default::default(),
            idle: AtomicU64::new(0),
        }
    }

    /// Returns the settings of these limits.
    pub fn settings(&self) -> &ConnectionSettings {
        &self.settings
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.registry.len()
    }

    /// Returns the numbers of refused and closed connections since the start.
    pub fn counts(&self) -> ConnectionCounts {
        let [head, body, response] = self.overdue.each_ref().map(RepeatedLog::total);
        let closed = [
            ("slow_head", head),
            ("slow_body", body),
            ("slow_response", response),
            ("idle", self.idle.load(Relaxed)),
            ("room", self.made_room.total()),
        ];
        ConnectionCounts { refused: self.refused.total(), closed }
    }

    /// Returns the interval at which to call [`sweep`](Self::sweep).
    pub(crate) fn sweep_interval(&self) -> Duration {
        self.settings.sweep_interval()
    }

    /// Counts a new connection. If there is no room, the idle connection with the least to lose is closed first, which
    /// takes a moment. Returns `None` if none is idle.
    pub(crate) async fn admit(&self, framing: Framing, uses_reserve: bool) -> Option<Slot> {
        self.set_clock();
        let most = match uses_reserve {
            true => self.settings.max_connections,
            false => self.settings.max_connections - self.settings.reserved_connections,
        };
        let activity = Arc::new(Activity::new(self.clock.clone(), framing));
        if let Some(slot) = self.registry.insert(&activity, most, || self.reservation()) {
            return Some(slot);
        }
        let slot = match self.make_room() {
            true => {
                let free = self.registry.insert_when_free(&activity, most, || self.reservation());
                tokio::time::timeout(CLOSING, free).await.ok()
            }
            false => None,
        };
        if slot.is_none() {
            self.refused.warn(|| {
                format!(
                    "refused a connection: {most} are open and none is idle; see --max-connections"
                )
            });
        }
        slot
    }

    /// Reserves memory at once on accept: the connection counts from then on, and its requests may be refused.
    fn reservation(&self) -> MemoryReservation {
        let mut memory = self.memory.reservation();
        memory.grow(CONNECTION_BYTES);
        memory
    }

    /// Closes the idle connection with the least to lose. Returns `false` if none is idle.
    pub(crate) fn make_room(&self) -> bool {
        let has_closed = self.registry.least_missed().is_some_and(|activity| activity.cut_off());
        if has_closed {
            let open = self.open();
            self.made_room.warn(|| {
                format!(
                    "closed an idle connection to make room: {open} are open; see --max-connections"
                )
            });
        }
        has_closed
    }

    /// Closes the connections that exceeded a time-out.
    pub(crate) fn sweep(&self) {
        self.set_clock();
        let is_short = self.memory.used() > self.memory.limit() / 4 * 3;
        let settings = if is_short { self.settings.impatient() } else { self.settings };
        for (activity, what) in self.registry.overdue(&settings) {
            if activity.cut_off() {
                self.log_overdue(what, &settings);
            }
        }
    }

    fn log_overdue(&self, what: CloseReason, settings: &ConnectionSettings) {
        let ConnectionSettings { head_timeout, progress_timeout, idle_timeout, .. } = settings;
        let rate = settings.min_bytes_per_second;
        let [head, body, response] = &self.overdue;
        match what {
            CloseReason::Head => head.warn(|| {
                format!("closed a connection: the head of its request was not complete after {head_timeout:?}")
            }),
            CloseReason::Body => body.warn(|| {
                format!(
                    "closed a connection: it sent fewer than {rate} bytes a second of its request in \
                     {progress_timeout:?}"
                )
            }),
            CloseReason::Response => response.warn(|| {
                format!(
                    "closed a connection: it read fewer than {rate} bytes a second of its response in \
                     {progress_timeout:?}"
                )
            }),
            CloseReason::Idle => {
                self.idle.fetch_add(1, Relaxed);
                log::debug!("closed a connection idle for {idle_timeout:?}");
            }
        }
    }

    fn set_clock(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.clock.fetch_max(elapsed, Relaxed);
    }
}

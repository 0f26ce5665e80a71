//! The current activity of one connection.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::task::AbortHandle;

use super::settings::ConnectionSettings;

/// The order of requests on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One after another: bytes that arrive while no request is being answered begin one.
    Sequential,
    /// Side by side, announced by the protocol ([`Activity::begin_call`]). A connection opens with `opening` bytes.
    Multiplexed {
        /// The length in bytes of the client's preface.
        opening: usize,
    },
}

/// The current activity of one connection. Its stream and its protocol write it; the sweep reads it.
///
/// Times are those of the sweep's coarse clock, in milliseconds.
#[derive(Debug)]
pub struct Activity {
    clock: Arc<AtomicU64>,
    framing: Framing,
    /// Requests that have begun and are not yet answered.
    calls: AtomicU32,
    /// Those of `calls` whose next bytes the client has to send.
    receiving: AtomicU32,
    /// The client has to send the head of a request, or the preface of the connection.
    is_opening: AtomicBool,
    /// Is `true` once a request has begun.
    has_called: AtomicBool,
    /// The socket accepts no more bytes, because the client does not read.
    is_write_blocked: AtomicBool,
    last_progress: AtomicU64,
    opening_since: AtomicU64,
    received: TransferWindow,
    sent: TransferWindow,
    abort: OnceLock<AbortHandle>,
    is_cut_off: AtomicBool,
}

/// A count of bytes since the beginning of a window of time.
#[derive(Debug, Default)]
struct TransferWindow {
    since: AtomicU64,
    bytes: AtomicU64,
}

impl TransferWindow {
    fn begin(&self, now: u64) {
        self.since.store(now, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// Returns `true` if the last window had fewer bytes than the settings demand, and begins the next one.
    fn is_too_slow(&self, now: u64, settings: &ConnectionSettings) -> bool {
        if now.saturating_sub(self.since.load(Relaxed)) < millis(settings.progress_timeout) {
            return false;
        }
        let wanted = settings.min_bytes_per_second as f64 * settings.progress_timeout.as_secs_f64();
        let is_too_slow = (self.bytes.load(Relaxed) as f64) < wanted.max(1.0);
        self.begin(now);
        is_too_slow
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    Head,
    Body,
    Response,
    Idle,
}

impl Activity {
    /// Returns the activity of a connection that begins now and is not registered. `clock`: milliseconds, advanced by the owner.
    pub fn new(clock: Arc<AtomicU64>, framing: Framing) -> Self {
        let now = clock.load(Relaxed);
        Self {
            clock,
            framing,
            calls: AtomicU32::new(0),
            receiving: AtomicU32::new(0),
            is_opening: AtomicBool::new(true),
            has_called: AtomicBool::new(false),
            is_write_blocked: AtomicBool::new(false),
            last_progress: AtomicU64::new(now),
            opening_since: AtomicU64::new(now),
            received: TransferWindow::default(),
            sent: TransferWindow::default(),
            abort: OnceLock::new(),
            is_cut_off: AtomicBool::new(false),
        }
    }

    /// Begins a request. Until the guard is dropped the connection is not idle and the server is the one that takes
    /// time, except while it is [receiving](Self::receive).
    pub fn begin_call(self: &Arc<Self>) -> CallGuard {
        self.calls.fetch_add(1, Relaxed);
        self.is_opening.store(false, Relaxed);
        self.has_called.store(true, Relaxed);
        CallGuard(self.clone())
    }

    /// Waits for the rest of a request until the guard is dropped. Only for protocols with one request at a time,
    /// because the rate is that of the connection.
    pub fn receive(self: &Arc<Self>) -> ReceivingGuard {
        if self.receiving.fetch_add(1, Relaxed) == 0 {
            self.received.begin(self.now());
        }
        ReceivingGuard(self.clone())
    }

    /// Returns `true` while a request is received or answered.
    pub fn has_calls(&self) -> bool {
        self.calls.load(Relaxed) > 0
    }

    fn now(&self) -> u64 {
        self.clock.load(Relaxed)
    }

    /// Records that `bytes` bytes were read; 0 at the end of the stream.
    pub(crate) fn record_read(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let now = self.now();
        self.last_progress.store(now, Relaxed);
        let received = self.received.bytes.fetch_add(bytes as u64, Relaxed) + bytes as u64;
        match self.framing {
            Framing::Sequential => {
                if self.calls.load(Relaxed) == 0 && !self.is_opening.swap(true, Relaxed) {
                    self.opening_since.store(now, Relaxed);
                }
            }
            Framing::Multiplexed { opening } => {
                if self.is_opening.load(Relaxed) && received >= opening as u64 {
                    self.is_opening.store(false, Relaxed);
                }
            }
        }
    }

    /// Records that the socket accepted `written` of `offered` bytes; 0 if it has no room. Nothing else shows that a
    /// client reads.
    pub(crate) fn record_written(&self, offered: usize, written: usize) {
        let now = self.now();
        let is_blocked = written < offered;
        let was_blocked = self.is_write_blocked.load(Relaxed);
        if is_blocked && !was_blocked {
            self.sent.begin(now);
        }
        if is_blocked != was_blocked {
            self.is_write_blocked.store(is_blocked, Relaxed);
        }
        if written > 0 {
            self.last_progress.store(now, Relaxed);
            self.sent.bytes.fetch_add(written as u64, Relaxed);
        }
    }

    pub(super) fn overdue(&self, settings: &ConnectionSettings) -> Option<CloseReason> {
        let now = self.now();
        if self.is_write_blocked.load(Relaxed) {
            return self.sent.is_too_slow(now, settings).then_some(CloseReason::Response);
        }
        if self.receiving.load(Relaxed) > 0 {
            return self.received.is_too_slow(now, settings).then_some(CloseReason::Body);
        }
        if self.calls.load(Relaxed) > 0 {
            return None;
        }
        if self.is_opening.load(Relaxed) {
            let open_for = now.saturating_sub(self.opening_since.load(Relaxed));
            return (open_for >= millis(settings.head_timeout)).then_some(CloseReason::Head);
        }
        let idle_for = now.saturating_sub(self.last_progress.load(Relaxed));
        (idle_for >= millis(settings.idle_timeout)).then_some(CloseReason::Idle)
    }

    /// Returns the loss from closing this connection; the smallest is closed first. `None` while a request is answered.
    pub(super) fn worth(&self) -> Option<(bool, u64)> {
        let is_idle = self.calls.load(Relaxed) == 0
            && !self.is_write_blocked.load(Relaxed)
            && !self.is_cut_off.load(Relaxed);
        is_idle.then(|| (self.has_called.load(Relaxed), self.last_progress.load(Relaxed)))
    }

    /// Closes the connection. Returns `false` if it was closed before.
    pub(super) fn cut_off(&self) -> bool {
        let is_first = !self.is_cut_off.swap(true, Relaxed);
        if let Some(abort) = self.abort.get() {
            abort.abort();
        }
        is_first
    }

    pub(crate) fn served_by(&self, abort: AbortHandle) {
        let _ = self.abort.set(abort);
        if self.is_cut_off.load(Relaxed) {
            self.cut_off();
        }
    }
}

/// Held from the head of a request to the end of its response.
#[derive(Debug)]
pub struct CallGuard(Arc<Activity>);

impl CallGuard {
    /// Returns the activity of the connection that carried the request.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.0
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Relaxed);
        self.0.last_progress.store(self.0.now(), Relaxed);
    }
}

/// Held while the server waits for the rest of a request.
#[derive(Debug)]
pub struct ReceivingGuard(Arc<Activity>);

impl Drop for ReceivingGuard {
    fn drop(&mut self) {
        self.0.receiving.fetch_sub(1, Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

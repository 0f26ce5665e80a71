//! The time that a client may take to send or read what it has begun.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use galatea_frontend::ConnectionSettings;

use crate::timer::{self, Timer};

/// A number of bytes that must move within each window of time.
///
/// A timer is set only while there is nothing to do but wait.
#[derive(Debug)]
pub(crate) struct ReceiveTimeout {
    window: Duration,
    bytes_per_second: u64,
    moved: usize,
    timer: Option<Timer>,
}

impl ReceiveTimeout {
    pub fn new(settings: &ConnectionSettings) -> Self {
        Self {
            window: settings.progress_timeout,
            bytes_per_second: settings.min_bytes_per_second,
            moved: 0,
            timer: None,
        }
    }

    /// Returns a time-out that accepts any progress.
    pub fn with_any_progress(settings: &ConnectionSettings) -> Self {
        Self { bytes_per_second: 0, ..Self::new(settings) }
    }

    pub fn progress(&mut self, bytes: usize) {
        self.moved = self.moved.saturating_add(bytes);
    }

    pub fn rest(&mut self) {
        self.timer = None;
    }

    /// Returns ready, with a reason, when fewer bytes moved in a window than required.
    pub fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        loop {
            let timer = self.timer.get_or_insert_with(|| {
                self.moved = 0;
                timer::after(self.window)
            });
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
            let wanted = self.bytes_per_second as f64 * self.window.as_secs_f64();
            if (self.moved as f64) < wanted.max(1.0) {
                let (rate, window) = (self.bytes_per_second, self.window);
                return Poll::Ready(format!("fewer than {rate} bytes a second in {window:?}"));
            }
        }
    }
}

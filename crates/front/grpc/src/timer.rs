//! Timers on tokio's time, which tests can move.
#![expect(clippy::disallowed_methods, reason = "tests can move this time")]

use std::{pin::Pin, time::Duration};

use tokio::time::{Instant, Sleep, sleep, sleep_until};

pub(crate) type Timer = Pin<Box<Sleep>>;

pub(crate) fn after(time: Duration) -> Timer {
    Box::pin(sleep(time))
}

pub(crate) fn at(end: Instant) -> Timer {
    Box::pin(sleep_until(end))
}

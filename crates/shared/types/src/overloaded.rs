//! The refusal of a request because its model has too much to do.

use std::time::Duration;

use crate::{Code, Error};

/// The error for a request that its model would answer too late, or has no place for: 503, UNAVAILABLE.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Overloaded {
    text: String,
    wait: Duration,
}

impl Overloaded {
    /// Creates an error that says to wait for `wait` before another attempt.
    pub fn new(text: String, wait: Duration) -> Self {
        Self { text, wait }
    }

    /// Returns the time to wait before another attempt.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns the wait in whole seconds, at least one, which is the form in HTTP.
    pub fn wait_seconds(&self) -> u64 {
        (self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)).max(1)
    }

    /// Returns the refusal that caused `error`, if one did.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl From<Overloaded> for Error {
    fn from(error: Overloaded) -> Self {
        Error::new(Code::Unavailable, error.text.clone()).with_source(error)
    }
}

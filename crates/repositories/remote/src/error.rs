//! Failures of remote repositories.

use std::{io, time::Duration};

use galatea_types::{Code, Error};
use galatea_web_client::{HttpFailure, Problem};

/// The meaning of a failure for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The requested thing does not exist.
    Missing,
    /// The server wants other credentials, or none.
    Denied,
    /// The request may succeed later: it is repeated a few times.
    Unavailable,
    /// The content has changed since it was listed.
    Changed,
    /// The content, or the server's response, cannot be used.
    Invalid,
    /// This machine failed, e.g. to write a file.
    Local,
}

/// A failure with a text for users. It contains no credentials.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct RemoteError {
    kind: FailureKind,
    text: String,
    retry_after: Option<Duration>,
}

impl RemoteError {
    /// Makes a failure. `text` names the thing and, if possible, a remedy.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), retry_after: None }
    }

    /// Sets the time after which the server wants to be asked again.
    #[must_use]
    pub fn retry_after(self, wait: Option<Duration>) -> Self {
        Self { retry_after: wait, ..self }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the time after which the server wants to be asked again.
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the failure with the action during which it happened.
    #[must_use]
    pub fn within(self, context: impl std::fmt::Display) -> Self {
        Self { text: format!("{context}: {}", self.text), ..self }
    }
}

impl From<HttpFailure> for RemoteError {
    fn from(failure: HttpFailure) -> Self {
        let kind = match failure.problem() {
            Problem::Connect | Problem::TooSlow | Problem::Broken => FailureKind::Unavailable,
            Problem::TooLong | Problem::Address => FailureKind::Invalid,
            Problem::Local => FailureKind::Local,
        };
        Self::new(kind, failure.to_string())
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        let code = match error.kind {
            FailureKind::Missing => Code::NotFound,
            FailureKind::Unavailable => Code::Unavailable,
            FailureKind::Denied | FailureKind::Changed | FailureKind::Local => Code::Internal,
            FailureKind::Invalid => Code::InvalidArg,
        };
        Self::new(code, error.text)
    }
}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> Self {
        let kind = match error.kind {
            FailureKind::Missing => io::ErrorKind::NotFound,
            FailureKind::Denied => io::ErrorKind::PermissionDenied,
            FailureKind::Invalid => io::ErrorKind::InvalidData,
            FailureKind::Unavailable | FailureKind::Changed | FailureKind::Local => {
                io::ErrorKind::Other
            }
        };
        Self::new(kind, error)
    }
}

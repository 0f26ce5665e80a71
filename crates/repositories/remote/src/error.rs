//! What can go wrong with a place in the network.

use std::{io, time::Duration};

use galatea_types::{Code, Error};
use galatea_web_client::{HttpFailure, Problem};

/// What a failure means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no such thing there.
    Missing,
    /// The place wants other credentials, or none of ours.
    Denied,
    /// It may work later: it is asked again, a few times.
    Unavailable,
    /// What is there is not what was there before.
    Changed,
    /// What is there, or what the server sent, cannot be used.
    Invalid,
    /// This machine could not do its part, e.g. write a file.
    Local,
}

/// A failure, in words for people. Carries no credentials.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct RemoteError {
    kind: FailureKind,
    text: String,
    retry_after: Option<Duration>,
}

impl RemoteError {
    /// `text` names the thing and, where there is one, what to do.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), retry_after: None }
    }

    /// The server said when to ask again.
    #[must_use]
    pub fn retry_after(self, wait: Option<Duration>) -> Self {
        Self { retry_after: wait, ..self }
    }

    /// What it means.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// When the server wants to be asked again.
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The same, with what was done when it happened.
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

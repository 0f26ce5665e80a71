//! What can go wrong while a runtime is looked for, installed or prepared.

use std::{fmt::Display, io, path::Path};

use galatea_types::Error;
use galatea_web_client::{HttpFailure, Problem};

pub(crate) fn cannot_read(path: &Path, reason: impl Display) -> Error {
    Error::unavailable(format!("cannot read '{}': {reason}", path.display()))
}

pub(crate) fn cannot_write(path: &Path, reason: impl Display) -> Error {
    Error::unavailable(format!(
        "cannot write to '{}': {reason}; GALATEA_HOME names another folder for what Galatea keeps",
        path.display()
    ))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error(transparent)]
    Http(HttpFailure),
    /// It cannot be the file that is wanted.
    #[error("it is longer than any file that is fetched")]
    TooLong,
    /// There was no room for it, or no permission.
    #[error("it cannot be written: {0}")]
    Write(io::Error),
    /// Neither the file nor a part of it.
    #[error("the server answers {0}")]
    Status(u16),
    /// After `done` of `total` bytes, with the error of the connection if it had one.
    #[error("the connection ended after {done} of {total} bytes{}", in_parentheses(.source))]
    Cut { done: u64, total: u64, source: Option<HttpFailure> },
}

impl From<HttpFailure> for DownloadError {
    fn from(failure: HttpFailure) -> Self {
        match failure.problem() {
            Problem::TooLong => Self::TooLong,
            _ => Self::Http(failure),
        }
    }
}

fn in_parentheses(error: &Option<HttpFailure>) -> String {
    error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default()
}

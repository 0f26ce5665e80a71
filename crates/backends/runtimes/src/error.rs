//! The failures of finding, installing or preparing a runtime.

use std::{fmt::Display, io, path::Path};

use galatea_types::Error;
use galatea_web_client::{HttpFailure, Problem};

pub(crate) fn cannot_read(path: &Path, reason: impl Display) -> Error {
    Error::unavailable(format!("cannot read '{}': {reason}", path.display()))
}

pub(crate) fn cannot_write(path: &Path, reason: impl Display) -> Error {
    Error::unavailable(format!(
        "cannot write to '{}': {reason}; set GALATEA_HOME to another folder",
        path.display()
    ))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error(transparent)]
    Http(HttpFailure),
    /// It is longer than any pinned file.
    #[error("it is larger than any file that this program fetches")]
    TooLong,
    /// The disk is full, or a permission is missing.
    #[error("it cannot be written: {0}")]
    Write(io::Error),
    /// The server sent neither the file nor a part of it.
    #[error("the server answers {0}")]
    Status(u16),
    /// The connection ended after `done` of `total` bytes. `source` is its error if it had one.
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

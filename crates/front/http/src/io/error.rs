//! Why a connection ends early.

use std::io;

use galatea_http1::HeadError;

/// Why a connection ends before its client wanted it to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// It was answered where its client understands an answer.
    #[error(transparent)]
    Head(#[from] HeadError),
    #[error("connection closed before message completed")]
    Incomplete,
    #[error("connection error")]
    Io(#[from] io::Error),
}

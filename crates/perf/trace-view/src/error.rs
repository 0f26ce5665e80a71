//! The errors of `galatea trace`, and its exit code.

use std::{io, path::PathBuf};

use galatea_command_line::{BadValue, CommandLineError};

use crate::report::SelectionError;

/// The exit code of `galatea trace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The requests were shown.
    Success = 0,
    /// A file cannot be read, or has no such request.
    Failed = 1,
    /// The command line is wrong.
    CommandLine = 2,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceError {
    #[error("{0}")]
    CommandLine(#[from] CommandLineError),
    #[error("{0}")]
    Value(#[from] BadValue),
    #[error("which file? The path of a trace file is expected")]
    NoFile,
    #[error("cannot read '{}': {reason}", path.display())]
    Read { path: PathBuf, reason: io::Error },
    #[error("'{}' holds no traces: {reason}", path.display())]
    NoTraces { path: PathBuf, reason: String },
    #[error("{0}")]
    Selection(#[from] SelectionError),
    #[error("cannot write '{}': {reason}", path.display())]
    Write { path: PathBuf, reason: io::Error },
    #[error("cannot write the report: {0}")]
    Json(#[from] serde_json::Error),
}

impl TraceError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::CommandLine(_) | Self::Value(_) | Self::NoFile => Exit::CommandLine,
            _ => Exit::Failed,
        }
    }
}

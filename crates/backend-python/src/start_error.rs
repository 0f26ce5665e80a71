//! Why a worker did not become ready.

use std::{io, path::PathBuf};

use galatea_types::Error;

use crate::{environment::Environment, identity::WorkerIdentity};

/// A worker did not start, or exited before its model was initialized.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot start a Python worker for {identity}: {error}")]
    NoResources { identity: WorkerIdentity, error: io::Error },
    #[error("no thread for a worker: {0}")]
    NoThread(io::Error),
    #[error("a worker's thread ended early")]
    ThreadEnded,
    #[error(
        "cannot start a Python worker for {identity}: the interpreter '{}' cannot be executed: {error}",
        python.display()
    )]
    NotExecuted { identity: WorkerIdentity, python: PathBuf, error: io::Error },
    /// The interpreter runs, but not the worker's code.
    #[error(
        "the Python worker of {identity} failed to start with {} ({}): {reason}",
        environment.python.display(), environment.description
    )]
    Failed { identity: WorkerIdentity, environment: Environment, reason: String },
    /// `exit`: how; `last_lines`: of stderr, each after a line break.
    #[error("the Python worker of {identity} {exit} before the model was ready{last_lines}")]
    Exited { identity: WorkerIdentity, exit: String, last_lines: String },
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        let text = error.to_string();
        match error {
            StartError::NoResources { .. }
            | StartError::NoThread(_)
            | StartError::NotExecuted { .. } => Error::unavailable(text),
            StartError::ThreadEnded | StartError::Failed { .. } | StartError::Exited { .. } => {
                Error::internal(text)
            }
        }
    }
}

//! Why a worker did not become ready.

use std::{io, sync::Arc, time::Duration};

use galatea_types::Error;

use crate::{identity::WorkerIdentity, program::Program};

/// A worker did not start, or exited before its model was initialized.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot start a {} for {identity}: {error}", identity.role)]
    NoResources { identity: WorkerIdentity, error: io::Error },
    #[error("no thread for a worker: {0}")]
    NoThread(io::Error),
    #[error("a worker's thread ended early")]
    ThreadEnded,
    #[error(
        "cannot start a {} for {identity}: the {} '{}' cannot be executed: {error}{}",
        identity.role, program.role, program.path.display(), of_isolation(program)
    )]
    NotExecuted { identity: WorkerIdentity, program: Arc<Program>, error: io::Error },
    /// The program runs, but not the worker's code.
    #[error(
        "the {} of {identity} failed to start with {} ({}): {reason}{}",
        identity.role, program.path.display(), program.description, of_isolation(program)
    )]
    Failed { identity: WorkerIdentity, program: Arc<Program>, reason: String },
    /// `exit`: how; `last_lines`: of stderr, each after a line break.
    #[error("the {} of {identity} {exit} before the model was ready{last_lines}", identity.role)]
    Exited { identity: WorkerIdentity, exit: String, last_lines: String },
    #[error(
        "the model did not initialize in the {} of {identity} within {} s ({setting}){last_lines}",
        identity.role, limit.as_secs_f64()
    )]
    NotInitialized {
        identity: WorkerIdentity,
        limit: Duration,
        setting: &'static str,
        last_lines: String,
    },
}

/// What may be the reason, of a program that is confined.
fn of_isolation(program: &Program) -> String {
    program.sandbox.as_ref().map_or_else(String::new, |sandbox| {
        format!(
            " (with --python-isolation={}: the program and its libraries must lie where --python-readable-path allows it)",
            sandbox.level.name()
        )
    })
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        let text = error.to_string();
        match error {
            StartError::NoResources { .. }
            | StartError::NoThread(_)
            | StartError::NotExecuted { .. } => Error::unavailable(text),
            StartError::ThreadEnded
            | StartError::Failed { .. }
            | StartError::Exited { .. }
            | StartError::NotInitialized { .. } => Error::internal(text),
        }
    }
}

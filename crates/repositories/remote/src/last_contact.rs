//! Reports once when a place stops answering or answers again.

use std::sync::Mutex;

use galatea_types::LockExt;

use crate::error::{FailureKind, RemoteError};

/// The result of the last request to a place.
#[derive(Debug, Default)]
pub struct LastContact {
    /// The reason why it did not answer.
    problem: Mutex<Option<String>>,
}

impl LastContact {
    /// Records a result after each request. `place` names it.
    pub fn note<T>(&self, place: &str, answer: &Result<T, RemoteError>) {
        let problem = match answer {
            Ok(_) => None,
            // The place answered.
            Err(error)
                if matches!(
                    error.kind(),
                    FailureKind::Invalid | FailureKind::Changed | FailureKind::Local
                ) =>
            {
                return;
            }
            Err(error) => Some(error.to_string()),
        };
        let mut known = self.problem.lock_unpoisoned();
        match (&*known, &problem) {
            (None, Some(reason)) => {
                log::warn!(
                    "model repository '{place}' cannot be read: {reason}; its loaded models stay loaded"
                );
            }
            (Some(_), None) => log::info!("model repository '{place}' can be read again"),
            _ => {}
        }
        *known = problem;
    }

    /// Returns the reason why it cannot be read now.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock_unpoisoned().clone()
    }
}

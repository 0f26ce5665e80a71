//! Why an operation on the control threads has no result of its own.

use galatea_types::{Code, Error};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ControlThreadError {
    #[error("too many {what} are waiting, the limit is {limit}: try again later")]
    QueueFull { what: &'static str, limit: usize },
    #[error("Server exiting")]
    Exiting,
    #[error("no thread can be started for the operation: try again later")]
    NoThread,
    #[error("the operation ended without a result")]
    Panicked,
}

impl From<ControlThreadError> for Error {
    fn from(error: ControlThreadError) -> Self {
        let code = match error {
            ControlThreadError::QueueFull { .. } => Code::Exhausted,
            ControlThreadError::Exiting | ControlThreadError::NoThread => Code::Unavailable,
            ControlThreadError::Panicked => Code::Internal,
        };
        Self::new(code, error.to_string()).with_source(error)
    }
}

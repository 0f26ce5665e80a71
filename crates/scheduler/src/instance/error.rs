//! Why an instance could not be started, or failed its requests.

use std::io;

use galatea_types::Error;

/// What went wrong with an instance.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstanceError {
    #[error("cannot start the thread of instance '{instance}': {source}")]
    NoThread { instance: String, source: io::Error },
    #[error("cannot start the thread for the time-outs of model '{model}': {source}")]
    NoExpiryThread { model: String, source: io::Error },
    #[error("starting instance '{instance}' of model '{model}' panicked: {reason}")]
    StartPanicked { instance: String, model: String, reason: String },
    /// Why the instance must be restarted.
    #[error("instance '{instance}' panicked: {reason}")]
    Panicked { instance: String, reason: String },
    /// What the clients of its requests read.
    #[error("instance '{instance}' of model '{model}' failed unexpectedly while executing")]
    FailedUnexpectedly { instance: String, model: String },
}

impl From<InstanceError> for Error {
    fn from(error: InstanceError) -> Self {
        let message = error.to_string();
        match error {
            InstanceError::NoThread { source, .. }
            | InstanceError::NoExpiryThread { source, .. } => {
                Error::internal(message).with_source(source)
            }
            _ => Error::internal(message),
        }
    }
}

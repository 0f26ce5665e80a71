//! Why an instance could not be started, or failed its requests.

use std::{fmt, io};

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
    /// The instance was started, and answered what it was warmed up with by errors. Triton's text.
    #[error("failed to run warmup sample '{sample}': {}", Joined(errors))]
    WarmUp { sample: String, errors: Vec<Error> },
}

/// Messages, each with what follows it in Triton's text.
struct Joined<'a>(&'a [Error]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|error| write!(f, "{}; ", error.message()))
    }
}

impl From<InstanceError> for Error {
    fn from(error: InstanceError) -> Self {
        let message = error.to_string();
        match error {
            InstanceError::NoThread { source, .. }
            | InstanceError::NoExpiryThread { source, .. } => {
                Error::internal(message).with_source(source)
            }
            // The first one may have a cause.
            InstanceError::WarmUp { errors, .. } => {
                let error = Error::invalid_arg(message);
                match errors.into_iter().next() {
                    Some(first) => error.with_source(first),
                    None => error,
                }
            }
            _ => Error::internal(message),
        }
    }
}

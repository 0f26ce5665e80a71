//! Why a request was not executed or not answered by its model. Clients match on these texts.

use galatea_types::{Code, Error};

/// Why a request failed in the scheduler. `prefix` is that of messages about one request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestFailure {
    #[error(
        "{prefix}Server is stopping, scheduler for model has stopped accepting new inference requests"
    )]
    Closed { prefix: String },
    #[error("{prefix}Exceeds maximum queue size")]
    QueueFull { prefix: String },
    #[error("{prefix}model '{model}' has no working instance: {reason}")]
    NoWorkingInstance { prefix: String, model: String, reason: Error },
    #[error("Request timeout expired")]
    Expired,
    /// Nobody waits for the response any more.
    #[error("Request was cancelled")]
    Abandoned,
    /// The backend is done with the request and has not answered it.
    #[error("the backend of model '{model}' gave no response to the request")]
    Unanswered { model: String },
    /// The batch size of a request is that of its inputs.
    #[error("{prefix}out of bounds index 0: request has 0 inputs")]
    NoInputs { prefix: String },
    #[error("no queue takes the request")]
    NoQueue,
}

impl RequestFailure {
    fn code(&self) -> Code {
        match self {
            Self::Closed { .. }
            | Self::QueueFull { .. }
            | Self::NoWorkingInstance { .. }
            | Self::Expired => Code::Unavailable,
            Self::Abandoned => Code::Cancelled,
            Self::NoInputs { .. } => Code::InvalidArg,
            Self::Unanswered { .. } | Self::NoQueue => Code::Internal,
        }
    }
}

impl From<RequestFailure> for Error {
    fn from(failure: RequestFailure) -> Self {
        let error = Error::new(failure.code(), failure.to_string());
        match failure {
            RequestFailure::NoWorkingInstance { reason, .. } => error.with_source(reason),
            _ => error,
        }
    }
}

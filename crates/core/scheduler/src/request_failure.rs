//! The reasons why a request was not executed or not answered by its model. Clients match on these texts.

use galatea_backend::NOT_ITERATIVE;
use galatea_types::{Code, CorrelationId, DataType, Error};

/// The reason why a request failed in the scheduler. `prefix` is that of messages about one request.
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
    /// The client has gone.
    #[error("Request was cancelled")]
    Abandoned,
    /// The backend is done with the request and has not answered it.
    #[error("the backend of model '{model}' gave no response to the request")]
    Unanswered { model: String },
    /// The batch size of a request is that of its inputs, so a request without inputs has none.
    #[error("{prefix}out of bounds index 0: request has 0 inputs")]
    NoInputs { prefix: String },
    #[error(
        "inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
    )]
    NoCorrelationId { model: String },
    #[error(
        "inference request to model '{model}' must specify batch-size 1 due to requirements of sequence batcher"
    )]
    SequenceBatchSize { model: String },
    #[error(
        "inference request for sequence {id} to model '{model}' must specify the START flag on the first request \
         of the sequence"
    )]
    SequenceNotStarted { id: CorrelationId, model: String },
    #[error(
        "inference request for sequence {id} to model '{model}': another client has a sequence of this \
         correlation ID. Choose another one"
    )]
    SequenceOfAnotherClient { id: CorrelationId, model: String },
    #[error(
        "inference request for sequence {id} to model '{model}': the instance that had the sequence stopped \
         working, and its state is lost. Begin the sequence again, with the START flag"
    )]
    SequenceLost { id: CorrelationId, model: String, reason: Error },
    #[error(
        "inference request for sequence {id} to model '{model}': the server removed its state, because it was idle \
         for longest and others needed the memory. Begin the sequence again, with the START flag, or allow more with \
         --memory-budget"
    )]
    SequenceGaveWay { id: CorrelationId, model: String },
    #[error(
        "correlation ID '{id}' of the request to model '{model}' is not of type {data_type}, which the model takes as \
         CONTROL_SEQUENCE_CORRID"
    )]
    CorrelationIdType { id: CorrelationId, model: String, data_type: DataType },
    /// An earlier request of the sequence was not executed.
    #[error("the sequence of the request was cancelled")]
    SequenceCancelled,
    #[error("timeout of the corresponding sequence has been expired")]
    SequenceExpired,
    #[error("{NOT_ITERATIVE}")]
    NotIterative,
}

impl RequestFailure {
    fn code(&self) -> Code {
        match self {
            Self::Closed { .. }
            | Self::QueueFull { .. }
            | Self::NoWorkingInstance { .. }
            | Self::Expired
            | Self::SequenceExpired
            | Self::SequenceGaveWay { .. }
            | Self::SequenceLost { .. } => Code::Unavailable,
            Self::Abandoned | Self::SequenceCancelled => Code::Cancelled,
            Self::NoInputs { .. }
            | Self::NoCorrelationId { .. }
            | Self::SequenceBatchSize { .. }
            | Self::SequenceNotStarted { .. }
            | Self::SequenceOfAnotherClient { .. }
            | Self::CorrelationIdType { .. } => Code::InvalidArg,
            Self::Unanswered { .. } | Self::NotIterative => Code::Internal,
        }
    }
}

impl From<RequestFailure> for Error {
    fn from(failure: RequestFailure) -> Self {
        let error = Error::new(failure.code(), failure.to_string());
        match failure {
            RequestFailure::NoWorkingInstance { reason, .. }
            | RequestFailure::SequenceLost { reason, .. } => error.with_source(reason),
            _ => error,
        }
    }
}

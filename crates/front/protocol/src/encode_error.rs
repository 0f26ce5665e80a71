//! The reason why an output cannot be returned in the requested form.

use std::{collections::TryReserveError, sync::Arc};

use galatea_types::{Code, DataType, Error, Shape};
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum EncodeError {
    #[error(
        "sending {data_type} data via JSON is not supported. Please use the binary data format for output {output}"
    )]
    NoJsonForm { output: Arc<str>, data_type: DataType },
    #[error("the data of output '{output}' ends inside an element")]
    TruncatedElement { output: Arc<str> },
    #[error("class result not available for output due to unsupported type '{0}'")]
    NoClasses(DataType),
    #[error(
        "class result not available for output '{output}' of {elements} elements, {limit} at most are ranked"
    )]
    TooManyClasses { output: Arc<str>, elements: usize, limit: usize },
    #[error("class label is too long")]
    LabelTooLong,
    #[error("output '{output}' has {elements} elements, which does not fit its shape {shape}")]
    ShapeMismatch { output: Arc<str>, elements: usize, shape: Shape },
    #[error("the server has no memory for the response; try again later")]
    NoMemory,
    #[error("Response has byte size {size} which exceeds gRPC's byte size limit {limit}.")]
    MessageTooLong { size: usize, limit: usize },
}

impl From<TryReserveError> for EncodeError {
    fn from(_: TryReserveError) -> Self {
        Self::NoMemory
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        let text = error.to_string();
        match error {
            EncodeError::NoJsonForm { .. }
            | EncodeError::NoClasses(_)
            | EncodeError::TooManyClasses { .. }
            | EncodeError::MessageTooLong { .. } => Self::invalid_arg(text),
            EncodeError::NoMemory => Self::new(Code::Exhausted, text),
            EncodeError::TruncatedElement { .. }
            | EncodeError::LabelTooLong
            | EncodeError::ShapeMismatch { .. } => Self::internal(text),
        }
    }
}

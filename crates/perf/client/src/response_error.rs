//! Responses that cannot be read, of either protocol.

use std::io;

use galatea_types::Error;

/// The reason why a response cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseError {
    #[error("its JSON of {header_length} bytes does not fit its {length} bytes")]
    HeaderLength { header_length: usize, length: usize },
    #[error("{0}")]
    Json(#[source] serde_json::Error),
    #[error("{0}")]
    Decode(#[source] prost::DecodeError),
    #[error("output '{output}' has unknown data type '{data_type}'")]
    DataType { output: String, data_type: String },
    #[error("output '{output}' has {size} bytes, but {left} are left")]
    DataSize { output: String, size: usize, left: usize },
    #[error("{0}")]
    Decompression(#[source] io::Error),
    #[error("it is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("it is not a protobuf message")]
    NotProtobuf,
    #[error("it has no gRPC status")]
    NoStatus,
    #[error("it holds no message")]
    NoMessage,
    #[error("the stream ends within a message")]
    StreamCutShort,
    #[error("the stream ends without a gRPC status")]
    StreamWithoutStatus,
}

impl From<ResponseError> for Error {
    fn from(error: ResponseError) -> Self {
        Error::internal(format!("failed to read the server's response: {error}")).with_source(error)
    }
}

//! Requests that cannot be sent, of either protocol.

use std::io;

use galatea_types::Error;

/// The reason why a request cannot be sent. Each names the part of the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("'{authority}' is not the address of a server")]
    Address {
        authority: String,
        #[source]
        cause: http::uri::InvalidUri,
    },
    #[error("failed to make the path of a call: {0}")]
    Path(#[source] http::Error),
    #[error("header '{name}: {value}' cannot be sent")]
    Header { name: String, value: String },
    #[error("the request has {length} bytes; gRPC takes less than 2 GiB")]
    TooLong { length: usize },
    #[error("failed to compress: {0}")]
    Compression(#[source] io::Error),
    #[error("failed to encode a request: {0}")]
    Encode(#[source] prost::EncodeError),
    #[error("failed to write JSON: {0}")]
    Json(#[source] serde_json::Error),
    #[error("parameter '{name}' is {value}, which JSON cannot carry")]
    Parameter { name: String, value: f64 },
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        use RequestError::{Compression, Encode, Json, Path};
        let new = match error {
            Path(_) | Compression(_) | Encode(_) | Json(_) => Self::internal,
            _ => Self::invalid_arg,
        };
        new(error.to_string()).with_source(error)
    }
}

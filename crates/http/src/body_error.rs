//! Request bodies that are not taken.

use std::io;

use galatea_types::Error;
use tokio::task::JoinError;

/// What is wrong with a body. The texts are Triton's where it has them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("failed to read the request body")]
    Read(#[source] hyper::Error),
    #[error(
        "request JSON size of {size} bytes exceeds the maximum allowed input size of {limit} bytes. Use \
         --http-max-input-size to increase the limit."
    )]
    TooLarge {
        size: usize,
        /// `--http-max-input-size`
        limit: usize,
    },
    #[error("nothing to be decompressed")]
    Empty,
    #[error("failed to decompress the request body")]
    Decompress(#[source] io::Error),
    #[error(
        "the request body grows to more than {most} bytes, {growth} times its size, when it is decompressed"
    )]
    Grows { most: usize, growth: usize },
    /// The thread that decompresses it panicked.
    #[error("failed to decompress the body")]
    Abandoned(#[source] JoinError),
}

impl From<BodyError> for Error {
    fn from(error: BodyError) -> Self {
        let new = match error {
            BodyError::Abandoned(_) => Error::internal,
            _ => Error::invalid_arg,
        };
        new(error.to_string()).with_source(error)
    }
}

//! Request bodies that are not taken.

use std::io;

use galatea_frontend::HeavyWorkError;
use galatea_types::{Code, Error, OverBudget};

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
    /// The threads that decompress it have too much to do.
    #[error(transparent)]
    Heavy(#[from] HeavyWorkError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("the server has no memory for the request body; try again later")]
    NoMemory,
}

impl From<BodyError> for Error {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::Heavy(error) => return error.into(),
            BodyError::OverBudget(error) => return error.into(),
            BodyError::NoMemory => Code::Exhausted,
            _ => Code::InvalidArg,
        };
        Error::new(code, error.to_string()).with_source(error)
    }
}

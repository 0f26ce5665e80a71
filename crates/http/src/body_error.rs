//! Request bodies that are not taken.

use std::{convert::Infallible, io};

use galatea_frontend::{DecompressError, HeavyWorkError};
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
    #[error("the request body {0}")]
    Grows(DecompressError<Infallible>),
    /// The threads that decompress it have too much to do.
    #[error(transparent)]
    Heavy(#[from] HeavyWorkError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("the server has no memory for the request body; try again later")]
    NoMemory,
}

impl From<DecompressError<BodyError>> for BodyError {
    fn from(error: DecompressError<BodyError>) -> Self {
        match error {
            DecompressError::Damaged(error) => Self::Decompress(error),
            DecompressError::Grows { most, growth } => {
                Self::Grows(DecompressError::Grows { most, growth })
            }
            DecompressError::NotTaken(error) => error,
        }
    }
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

//! Errors of request bodies.

use std::{convert::Infallible, io};

use galatea_frontend::{ClientLimitError, DecompressError, HeavyWorkError};
use galatea_http1::BodyFault;
use galatea_types::{Code, Error, OverBudget};

/// The most non-empty chunks in a body, as in Triton.
pub(crate) const MAX_CHUNKS: u32 = 65_536;

/// The error for a body with more chunks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks."
)]
pub(crate) struct TooManyChunks;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(io::Error),
    #[error("end of file before message length reached")]
    Incomplete,
    #[error(transparent)]
    Fault(BodyFault),
}

/// The fault of a body. The texts are Triton's where it has them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("failed to read the request body")]
    Read(#[from] ReadError),
    #[error(
        "{what} of {size} bytes exceeds the maximum allowed input size of {limit} bytes. Use --http-max-input-size to \
         increase the limit."
    )]
    TooLarge {
        /// The name of the part that is too large.
        what: &'static str,
        size: usize,
        /// `--http-max-input-size`
        limit: usize,
    },
    #[error(transparent)]
    TooManyChunks(#[from] TooManyChunks),
    #[error("there is nothing to decompress")]
    Empty,
    #[error("failed to decompress the request body")]
    Decompress(#[source] io::Error),
    #[error("the request body {0}")]
    Grows(DecompressError<Infallible>),
    /// The threads for decompression are too busy.
    #[error(transparent)]
    Heavy(#[from] HeavyWorkError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error(transparent)]
    ClientLimit(#[from] ClientLimitError),
    #[error("the server has no memory for the request body; try again later")]
    NoMemory,
}

/// The limit on the size of a part of a request, and the name of the part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimit {
    pub most: usize,
    what: &'static str,
}

impl SizeLimit {
    /// Binary tensors have no limit of their own: their memory is the bytes that arrive, which the budget counts.
    pub const NONE: Self = Self { most: usize::MAX, what: "request body" };

    pub fn of_json(most: usize) -> Self {
        Self { most, what: "request JSON size" }
    }

    pub fn of_compressed(most: usize) -> Self {
        Self { most, what: "compressed request size" }
    }

    pub fn of_decompressed(most: usize) -> Self {
        Self { most, what: "decompressed request size" }
    }

    pub fn check(self, size: usize) -> Result<(), BodyError> {
        let Self { most: limit, what } = self;
        if size > limit { Err(BodyError::TooLarge { what, size, limit }) } else { Ok(()) }
    }
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
            BodyError::ClientLimit(error) => return error.into(),
            BodyError::NoMemory => Code::Exhausted,
            _ => Code::InvalidArg,
        };
        Error::new(code, error.to_string()).with_source(error)
    }
}

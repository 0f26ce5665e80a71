//! The errors of generated data, of files in a directory and of batches, in perf_analyzer's words where it has some.

use std::{io, path::PathBuf};

/// The model leaves the input's shape open and `--shape` does not give it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("input {0} contains dynamic shape, provide shapes to send along with the request")]
pub(super) struct OpenShape(pub String);

/// The reason why no data can be generated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GenerateError {
    #[error("can not generate data for shape tensor '{0}', user-provided data is needed.")]
    ShapeTensor(String),
    #[error(transparent)]
    OpenShape(#[from] OpenShape),
    #[error("input {0} is too large")]
    TooLarge(String),
}

/// The reason why a directory of input files cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    #[error("failed to read '{directory}': {error}")]
    Unreadable {
        directory: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("Provided data file '{0}' does not correspond to a valid model input or output.")]
    UnknownFile(String),
    #[error("failed to open file '{file}'")]
    CannotOpen {
        file: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("file '{0}' is empty")]
    Empty(PathBuf),
    #[error(transparent)]
    OpenShape(#[from] OpenShape),
    #[error("provided data for input {input} has byte size {size}, expect {expected}")]
    WrongSize { input: String, size: usize, expected: usize },
    #[error("provided data for input {input} has {count} elements, expect {expected}")]
    WrongCount { input: String, count: usize, expected: usize },
    #[error("a line for input {0} is too long")]
    LineTooLong(String),
}

/// The reason why steps cannot be joined into one request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BatchError {
    #[error(
        "For batch sizes larger than 1, the same set of inputs must be specified for each batch. You cannot use \
         different set of optional inputs for each individual batch."
    )]
    Inputs,
    // perf_analyzer leaves the parenthesis open, and programs look for its text.
    #[error(
        "can not batch tensors with different shapes together (input '{input}' expected shape {expected} and \
         received {received}"
    )]
    Shapes { input: String, expected: String, received: String },
    /// One shape tensor serves the whole batch. Holds the part that differs.
    #[error("The shape tensors should be identical in a batch (mismatch in {0})")]
    ShapeTensors(&'static str),
}

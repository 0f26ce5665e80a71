//! Turns exceptions of a model's code into errors for the log.

use galatea_types::{Error, shortened};

/// Python's report of an exception, besides the message that the client gets.
#[derive(Debug, thiserror::Error)]
#[error("{traceback}")]
struct PythonException {
    /// As `traceback.format_exception` writes it, exceptions in its chain included.
    traceback: String,
}

/// Returns `error` with the traceback as its source, or unchanged if there is no traceback.
pub(crate) fn with_traceback(error: Error, traceback: &str) -> Error {
    let error = error.shortened();
    match traceback.trim_end() {
        "" => error,
        traceback => {
            error.with_source(PythonException { traceback: shortened(traceback).into_owned() })
        }
    }
}

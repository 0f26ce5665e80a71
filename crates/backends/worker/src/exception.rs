//! Exceptions of a model's code, for the log.

use galatea_types::{Error, shortened};

/// What Python reported beside the message that the client gets.
#[derive(Debug, thiserror::Error)]
#[error("{traceback}")]
struct PythonException {
    /// As `traceback.format_exception` writes it, exceptions in its chain included.
    traceback: String,
}

/// `error` with the traceback as its source; as it is when there is none.
pub(crate) fn with_traceback(error: Error, traceback: &str) -> Error {
    let error = error.shortened();
    match traceback.trim_end() {
        "" => error,
        traceback => {
            error.with_source(PythonException { traceback: shortened(traceback).into_owned() })
        }
    }
}

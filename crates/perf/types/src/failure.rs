//! The reason why the tool ends without a result, and its exit status.

/// Exit statuses are those of perf_analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The run was measured, or a text was printed.
    Success = 0,
    /// The measurement was not stable.
    Unstable = 2,
    /// The command line is wrong.
    Option = 3,
    /// Any other failure.
    Generic = 99,
}

/// An error for the user: a text that names the thing, and the exit status.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The status the program ends with.
    pub exit: Exit,
    /// The text for the user.
    pub message: String,
}

impl Failure {
    /// A refused command line.
    pub fn option(message: impl Into<String>) -> Self {
        Self { exit: Exit::Option, message: message.into() }
    }

    /// Any other failure.
    pub fn generic(message: impl Into<String>) -> Self {
        Self { exit: Exit::Generic, message: message.into() }
    }
}

/// The result of an operation whose failure ends the run.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

//! Why the tool ends without a result, and the exit status that tells it.

use std::fmt;

/// Exit statuses are those of perf_analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Success = 0,
    /// No stable measurement.
    Unstable = 2,
    /// The command line.
    Option = 3,
    Generic = 99,
}

/// An error for the user: a text that names the thing, and the exit status.
#[derive(Clone, Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

impl Failure {
    pub fn option(message: impl Into<String>) -> Self {
        Self { exit: Exit::Option, message: message.into() }
    }

    pub fn generic(message: impl Into<String>) -> Self {
        Self { exit: Exit::Generic, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

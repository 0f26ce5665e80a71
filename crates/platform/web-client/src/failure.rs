//! The reasons why there is no response, or no more of it.

use std::{error::Error, fmt};

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No connection could be made.
    Connect,
    /// The server was too slow.
    TooSlow,
    /// The connection ended early, or its data is not HTTP.
    Broken,
    /// The body is longer than allowed.
    TooLong,
    /// The address, or one that it redirects to, cannot be used.
    Address,
    /// This machine failed, or the program was asked to stop.
    Local,
}

/// A request without a response, with a text for users. It contains no credentials.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct HttpFailure {
    problem: Problem,
    text: String,
}

impl HttpFailure {
    /// Makes a failure. `text` says what happened.
    pub fn new(problem: Problem, text: impl Into<String>) -> Self {
        Self { problem, text: text.into() }
    }

    /// Returns the kind of the failure.
    pub fn problem(&self) -> Problem {
        self.problem
    }

    /// Returns the failure with the action during which it happened.
    #[must_use]
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self { text: format!("{context}: {}", self.text), ..self }
    }
}

pub(crate) fn broken(error: &dyn Error) -> HttpFailure {
    HttpFailure::new(Problem::Broken, format!("the connection broke: {}", innermost(error)))
}

/// Returns the text of the innermost error, which says what happened. The outer ones say where.
pub(crate) fn innermost(error: &dyn Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

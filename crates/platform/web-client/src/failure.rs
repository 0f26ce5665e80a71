//! Why there is no response, or no more of it.

use std::{error::Error, fmt};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No connection could be made.
    Connect,
    /// The server was too slow.
    TooSlow,
    /// The connection ended early, or what came is no HTTP.
    Broken,
    /// The body is longer than any that is expected.
    TooLong,
    /// The address, or one that it redirects to, cannot be used.
    Address,
    /// This machine could not do its part, or the program was asked to stop.
    Local,
}

/// A request without a response, in words for people. Carries no credentials.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct HttpFailure {
    problem: Problem,
    text: String,
}

impl HttpFailure {
    /// `text` says what happened.
    pub fn new(problem: Problem, text: impl Into<String>) -> Self {
        Self { problem, text: text.into() }
    }

    /// What kind of thing went wrong.
    pub fn problem(&self) -> Problem {
        self.problem
    }

    /// The same, with what was done when it happened.
    #[must_use]
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self { text: format!("{context}: {}", self.text), ..self }
    }
}

pub(crate) fn broken(error: &dyn Error) -> HttpFailure {
    HttpFailure::new(Problem::Broken, format!("the connection broke: {}", innermost(error)))
}

/// What is at the bottom of an error says what happened; the rest is where.
pub(crate) fn innermost(error: &dyn Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

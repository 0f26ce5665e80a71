//! Mistakes in a configuration text, with their places.

use std::{error, fmt};

use galatea_types::Error;

use super::placeholder;
use crate::{Diagnostic, Place, Position};

/// A mistake in a configuration text, with its place.
///
/// `line` and `column` count from 1, columns in characters, as editors show them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The mistake.
    pub message: String,
    /// Advice, if the intention can be guessed.
    pub hint: Option<String>,
}

impl TextError {
    pub(crate) fn new(position: Position, message: impl Into<String>) -> Self {
        let Position { line, column } = position;
        Self { line, column, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes a finding with the file whose text is `source`.
    pub fn into_diagnostic(self, file: impl Into<String>, source: &str) -> Diagnostic {
        let place = Place::in_text(file, source, (self.line, self.column));
        let found = Diagnostic::error(self.message).at(place);
        placeholder::explained(match self.hint {
            Some(hint) => found.with_advice(hint),
            None => found,
        })
    }
}

/// `L:C: message; hint`, on one line.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl error::Error for TextError {}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

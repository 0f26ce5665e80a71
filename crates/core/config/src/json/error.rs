//! What is wrong with a configuration in JSON.

use std::fmt;

use galatea_types::Error;
use prost_reflect::prost::DecodeError;

use crate::schema;

/// Why a configuration override cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// It is too long.
    #[error("Invalid config override: it has {size} bytes, the limit is {limit}")]
    TooLong {
        /// Its bytes.
        size: usize,
        /// The most that are read.
        limit: usize,
    },
    /// It has too many parts.
    #[error("Invalid config override: its lists and maps have more than {limit} members together")]
    TooManyElements {
        /// The most that are read.
        limit: usize,
    },
    /// It is no JSON.
    #[error("Invalid config override: {0}")]
    Json(#[from] serde_json::Error),
    /// A field of it.
    #[error("Invalid config override: {0}")]
    Field(#[from] FieldError),
    /// The program was built wrong.
    #[error("Invalid config override: {}", schema::BROKEN)]
    NoSchema,
    /// The message differs from its description, which a wrong build could do.
    #[error("Invalid config override: {0}")]
    Message(#[from] DecodeError),
}

impl From<OverrideError> for Error {
    fn from(error: OverrideError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

/// What is wrong with a field, and the path to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// `.input`, `[0]`, `.dims`: outermost part first.
    path: Vec<String>,
    reason: String,
    hint: Option<String>,
}

impl FieldError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { path: Vec::new(), reason: reason.into(), hint: None }
    }

    /// The same with what to write instead, where that can be guessed.
    pub(super) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// The same error, seen from outside of `part`.
    pub(super) fn at(mut self, part: impl Into<String>) -> Self {
        self.path.insert(0, part.into());
        self
    }
}

/// `input[0].dims: {reason}; {hint}`
impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.concat();
        match path.strip_prefix('.') {
            Some(path) => write!(f, "{path}: {}", self.reason)?,
            None => f.write_str(&self.reason)?,
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for FieldError {}

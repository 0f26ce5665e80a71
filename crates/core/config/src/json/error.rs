//! Mistakes in the fields of a configuration in JSON.

use std::fmt;

/// A mistake in a field, and the path to the field: `.input[0].dims`.
pub(super) struct FieldError {
    path: String,
    reason: String,
}

impl FieldError {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { path: String::new(), reason: reason.into() }
    }

    /// Adds the likely correction, if there is one.
    pub fn with_hint(mut self, hint: Option<String>) -> Self {
        self.reason.extend(hint.map(|hint| format!("; {hint}")));
        self
    }

    /// Returns the same error with `part` before its path.
    pub fn at(mut self, part: &str) -> Self {
        self.path.insert_str(0, part);
        self
    }
}

/// `input[0].dims: {reason}; {hint}`
impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.strip_prefix('.') {
            Some(path) => write!(f, "{path}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

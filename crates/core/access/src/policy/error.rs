//! What is wrong with a policy, where, and what to do.

use std::ops::Range;

/// A mistake in a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}; {advice}")]
pub struct PolicyError {
    /// The file, as it was named.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub advice: String,
}

impl PolicyError {
    /// At the bytes `span` of the file's text.
    pub(super) fn at(
        (file, source): (&str, &str),
        span: Range<usize>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let before = source.get(..span.start.min(source.len())).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            text: text.into(),
            advice: advice.into(),
        }
    }
}

//! Findings about a configuration, as people read them: the sentence, its place, and advice.

mod place;
mod render;

use std::{error, fmt};

use galatea_types::{Code, Error};

pub use self::{
    place::{Place, Position},
    render::{Part, coloured, plain},
};
use crate::FieldPath;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The model does not load.
    Error,
    /// The model loads, but may not do what was meant.
    Warning,
    /// Worth knowing.
    Note,
}

galatea_types::names! {
    /// As messages begin with it.
    pub Severity::as_str { Error = "error", Warning = "warning", Note = "note" }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A finding about a model's configuration or its files. An [`Error`] that came from a configuration has it as its source, and
/// [`Diagnostic::of`] returns it. So the log, the index, the answer to a load and an inspection without a server say the same.
///
/// ```
/// use galatea_config::{Diagnostic, Place};
///
/// let found = Diagnostic::error("model input 'x' must specify 'dims' for m")
///     .with_advice("write `dims: [ -1 ]` for one dimension of any size")
///     .at(Place::in_text("m/config.pbtxt", "input {\n  name: \"x\"\n}", (1, 1)));
/// assert_eq!(
///     found.one_line(),
///     "m/config.pbtxt:1:1: model input 'x' must specify 'dims' for m; write `dims: [ -1 ]` for one dimension of any size"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The problem on one line, in Triton's words when it has some.
    pub text: String,
    /// Advice on one line.
    pub advice: Option<String>,
    /// The field of the finding; empty when it is about none.
    pub field: FieldPath,
    /// The place, if it is known.
    pub place: Option<Place>,
}

impl Diagnostic {
    /// Makes a finding of [`Severity::Error`], without a place.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(Severity::Error, text)
    }

    /// Makes a finding of [`Severity::Warning`], without a place.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Severity::Warning, text)
    }

    /// Makes a finding of [`Severity::Note`], without a place.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Severity::Note, text)
    }

    fn new(severity: Severity, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { severity, text, advice: None, field: FieldPath::default(), place: None }
    }

    /// Adds advice.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Sets the field, by which the place is found when the text is available.
    #[must_use]
    pub fn about(mut self, field: impl Into<FieldPath>) -> Self {
        self.field = field.into();
        self
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Returns the finding that an error came from.
    pub fn of(error: &Error) -> Option<&Self> {
        let mut cause = error::Error::source(error);
        while let Some(source) = cause {
            if let Some(found) = source.downcast_ref() {
                return Some(found);
            }
            cause = source.source();
        }
        None
    }

    /// Returns the line of the file, from 1.
    pub fn line(&self) -> Option<usize> {
        Some(self.place.as_ref()?.position?.line)
    }

    /// Returns the character in the line, from 1.
    pub fn column(&self) -> Option<usize> {
        Some(self.place.as_ref()?.position?.column)
    }

    /// Returns `m/config.pbtxt:12:3: text; advice`, with the parts that are known.
    pub fn one_line(&self) -> String {
        let place = self.place.iter().map(|place| format!("{place}: "));
        let advice = self.advice.iter().map(|advice| format!("; {advice}"));
        place.chain([self.text.clone()]).chain(advice).collect()
    }

    /// Returns place and advice for messages whose text must come first, because clients know it by its beginning: `
    /// (m/config.pbtxt:12:3: advice)`, with the parts that are known.
    pub fn appendix(&self) -> String {
        match (&self.place, &self.advice) {
            (Some(place), Some(advice)) => format!(" ({place}: {advice})"),
            (Some(place), None) => format!(" ({place})"),
            (None, Some(advice)) => format!(" ({advice})"),
            (None, None) => String::new(),
        }
    }

    /// Returns an error with the text alone. [`ConfigSource::locate`](crate::ConfigSource::locate) adds place and advice when it
    /// has found the field.
    pub fn into_unplaced_error(self, code: Code) -> Error {
        Error::new(code, self.text.as_str()).with_source(self)
    }

    /// Returns an error with the finding on one line, the place first.
    pub fn into_error(self, code: Code) -> Error {
        Error::new(code, self.one_line()).with_source(self)
    }
}

/// The text alone: an error with this as its source already has place and advice.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl error::Error for Diagnostic {}

#[cfg(test)]
mod tests;

//! What is wrong with a configuration, as it is told to people: the sentence, its place, and what to do.

mod place;
mod render;

use std::{error, fmt};

use galatea_types::{Code, Error};

pub use self::{
    place::{Place, Position},
    render::{Part, coloured, plain},
};
use crate::FieldPath;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The model does not load.
    Error,
    /// It loads, and does perhaps not what was meant.
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

/// One finding about a model's configuration or its files. The source of an [`Error`] where that came from a
/// configuration: [`Diagnostic::of`] finds it again, so that the log, the index, the answer to a load and an inspection
/// without a server say the same.
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
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, on one line: Triton's sentence where it has one.
    pub text: String,
    /// What to do about it, on one line.
    pub advice: Option<String>,
    /// The field that it is about; empty when it is about none.
    pub field: FieldPath,
    /// Where it is, as far as that is known.
    pub place: Option<Place>,
}

impl Diagnostic {
    /// One of [`Severity::Error`], without a place.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(Severity::Error, text)
    }

    /// One of [`Severity::Warning`], without a place.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Severity::Warning, text)
    }

    /// One of [`Severity::Note`], without a place.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Severity::Note, text)
    }

    fn new(severity: Severity, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { severity, text, advice: None, field: FieldPath::default(), place: None }
    }

    /// The same with what to do.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The same about a field, by which its place is found where the text is at hand.
    #[must_use]
    pub fn about(mut self, field: impl Into<FieldPath>) -> Self {
        self.field = field.into();
        self
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// The finding that an error came from.
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

    /// The line of the file, from 1.
    pub fn line(&self) -> Option<usize> {
        Some(self.place.as_ref()?.position?.line)
    }

    /// The character in the line, from 1.
    pub fn column(&self) -> Option<usize> {
        Some(self.place.as_ref()?.position?.column)
    }

    /// `m/config.pbtxt:12:3: text; advice`, as far as they are known.
    pub fn one_line(&self) -> String {
        let place = self.place.iter().map(|place| format!("{place}: "));
        let advice = self.advice.iter().map(|advice| format!("; {advice}"));
        place.chain([self.text.clone()]).chain(advice).collect()
    }

    /// What follows the text where that must come first, because clients know it by its beginning:
    /// ` (m/config.pbtxt:12:3: advice)`, as far as they are known.
    pub fn appendix(&self) -> String {
        match (&self.place, &self.advice) {
            (Some(place), Some(advice)) => format!(" ({place}: {advice})"),
            (Some(place), None) => format!(" ({place})"),
            (None, Some(advice)) => format!(" ({advice})"),
            (None, None) => String::new(),
        }
    }

    /// The error that says the text alone: place and advice follow when [`ConfigSource::locate`](crate::ConfigSource::locate)
    /// has found where the field stands.
    pub fn into_unplaced_error(self, code: Code) -> Error {
        Error::new(code, self.text.as_str()).with_source(self)
    }

    /// The error that says it on one line, the place first.
    pub fn into_error(self, code: Code) -> Error {
        Error::new(code, self.one_line()).with_source(self)
    }
}

/// The text alone: an error that has this as its source has said place and advice.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl error::Error for Diagnostic {}

#[cfg(test)]
mod tests;

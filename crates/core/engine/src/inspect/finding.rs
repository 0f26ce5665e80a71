//! What an inspection finds.

use std::path::PathBuf;

use galatea_config::{Diagnostic, Place, Severity};
use galatea_types::Error;

/// Something that an inspection found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The model that it is about; empty for the repository itself.
    pub model: String,
    /// What it is, and where.
    pub diagnostic: Diagnostic,
    /// The file of its place as a program on this machine opens it, where there is one.
    pub path: Option<PathBuf>,
}

impl Finding {
    pub(crate) fn new(model: &str, diagnostic: Diagnostic) -> Self {
        Self { model: model.to_owned(), diagnostic, path: None }
    }

    /// One that is about no model, at a place that is written as it is opened.
    pub fn of_file(diagnostic: Diagnostic) -> Self {
        let path = diagnostic.place.as_ref().map(|place| PathBuf::from(&place.file));
        Self { model: String::new(), diagnostic, path }
    }

    /// Why a model cannot be loaded. `file`: where it is, unless the error knows better.
    pub(crate) fn of_error(model: &str, file: &str, error: &Error) -> Self {
        let found = Diagnostic::of(error).cloned();
        let mut found = found.unwrap_or_else(|| Diagnostic::error(error.message().trim_end()));
        found.place.get_or_insert_with(|| Place::file(file));
        Self::new(model, found)
    }

    /// What cannot be known before a server runs.
    pub(crate) fn note(model: &str, file: &str, error: &Error) -> Self {
        Self::new(model, Diagnostic::note(error.message()).at(Place::file(file)))
    }

    /// Whether a server would not serve the model.
    pub fn is_error(&self) -> bool {
        self.diagnostic.severity == Severity::Error
    }
}

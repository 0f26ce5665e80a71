//! Files of a model that its configuration names, and that cannot be read.

use std::io;

use galatea_config::{Diagnostic, Place};
use galatea_types::Error;

use crate::repository::text_file_advice;

/// A file that cannot be read. Triton's words, with the name of the model for its folder: clients read this.
#[derive(Debug, thiserror::Error)]
#[error("failed to open text file for read {model}/{path}: {}", reason(source))]
pub(crate) struct ModelFileError {
    pub model: String,
    /// From the model's folder, as the configuration has it.
    pub path: String,
    /// What to do where there is none.
    pub missing: &'static str,
    pub source: io::Error,
}

/// Without the number that follows the system's words.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error ").next().map(str::to_owned);
    words.unwrap_or(text)
}

impl From<ModelFileError> for Error {
    fn from(error: ModelFileError) -> Self {
        let advice = match error.source.kind() {
            io::ErrorKind::NotFound => Some(error.missing),
            _ => text_file_advice(&error.source),
        };
        let place = Place::file(format!("{}/{}", error.model, error.path));
        let mut found = Diagnostic::error(error.to_string()).at(place);
        found.advice = advice.map(str::to_owned);
        Self::internal(format!("{error}{}", found.appendix())).with_source(found)
    }
}

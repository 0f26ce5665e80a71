//! Errors of a model repository, or of a model's folder in one. Every text names the model or the path.

use std::io;

use galatea_config::{Diagnostic, Place};
use galatea_types::{Code, Error};

use super::text_file;

/// Returns an error with advice and a place.
pub(super) fn advised(code: Code, text: String, place: &str, advice: &str) -> Error {
    let found = Diagnostic::error(&*text).with_advice(advice).at(Place::file(place));
    Error::new(code, format!("{text}{}", found.appendix())).with_source(found)
}

/// Returns the error of an unreadable folder, with advice if there is any.
pub(super) fn unreadable(code: Code, text: String, place: &str, source: io::Error) -> Error {
    match text_file::advice(&source) {
        Some(advice) => advised(code, text, place, advice),
        None => Error::new(code, text).with_source(source),
    }
}

/// Returns the error of a model whose folder cannot be read.
pub(super) fn unreadable_model(model: &str, source: io::Error) -> Error {
    let text = format!("failed to read the folder of model '{model}': {source}");
    unreadable(Code::Internal, text, model, source)
}

/// Returns the error of a missing repository.
pub(super) fn no_stat(path: &str, source: io::Error) -> Error {
    Error::internal(format!("failed to stat file {path}: {source}")).with_source(source)
}

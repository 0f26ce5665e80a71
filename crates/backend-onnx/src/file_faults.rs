//! What is wrong with the file of a model, where the library's own words are a riddle.

use std::path::Path;

use galatea_config::{Diagnostic, Place};
use galatea_types::Error;

use crate::header::{Header, HeaderError};

/// What the library says of a file, and what is wrong with it where that can be seen from outside. `model`: its name and
/// folder.
pub(crate) fn explained(error: Error, path: &Path, model: (&str, &Path)) -> Error {
    let found = match Header::of_file(path) {
        Err(reason) => not_readable(&reason, path, model),
        Ok(header) => match header.missing_weights(path) {
            Some(missing) => weights_missing(missing, path, model),
            None => return error,
        },
    };
    let advice = format!("{}; {}", found.text, found.advice.as_deref().unwrap_or_default());
    let found = Diagnostic { text: error.message().to_owned(), ..found }.with_advice(advice);
    let text = format!("{error}{}", found.appendix());
    Error::new(error.code(), text).with_source(found)
}

/// Why a file is no ONNX model.
pub(crate) fn not_readable(error: &HeaderError, path: &Path, model: (&str, &Path)) -> Diagnostic {
    Diagnostic::error(format!("the model's file cannot be loaded: {error}"))
        .with_advice("export or copy the model again, and compare the sizes of both files")
        .at(place(path, model))
}

/// A file of weights that is not there.
pub(crate) fn weights_missing(missing: &str, path: &Path, model: (&str, &Path)) -> Diagnostic {
    let shown: String = missing.chars().flat_map(char::escape_debug).take(200).collect();
    Diagnostic::error(format!("the file '{shown}' with the weights of the model is missing"))
        .with_advice(
            "copy it beside the model's file: an ONNX model with external data is more than one file",
        )
        .at(place(path, model))
}

/// From the repository on.
fn place(path: &Path, (name, folder): (&str, &Path)) -> Place {
    let inside = path.strip_prefix(folder).unwrap_or(path);
    Place::file(format!("{name}/{}", inside.display()))
}

//! Explains faults of a model's files if the library's own message is unclear.

use std::{fs, path::Path};

use galatea_backend::{CompletionContext, explain};
use galatea_config::Diagnostic;
use galatea_types::Error;

use crate::header::{Header, HeaderError};

/// Adds to the library's error the file's fault, if it can be seen without the library.
pub(crate) fn explained(error: Error, path: &Path, version: &CompletionContext<'_>) -> Error {
    if !is_ir(path) {
        return error;
    }
    let found = match Header::of_file(path) {
        Err(HeaderError::TooLarge) => return error,
        Err(reason) => not_readable(&reason, path, version),
        Ok(header) => match wrong_weights(&header, path, version) {
            Some(wrong) => wrong,
            None => return error,
        },
    };
    explain(error, found)
}

/// Returns true for an IR model by its name: its content may be anything.
pub(crate) fn is_ir(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"))
}

/// Explains why a file is not an IR model.
pub(crate) fn not_readable(
    error: &HeaderError,
    path: &Path,
    version: &CompletionContext<'_>,
) -> Diagnostic {
    Diagnostic::error(format!("the model's file cannot be loaded: {error}"))
        .with_advice("export or copy the model again, and compare the sizes of both files")
        .at(version.place(path))
}

/// Reports that the file beside the model's is missing or too short for the model's weights.
pub(crate) fn wrong_weights(
    header: &Header,
    path: &Path,
    version: &CompletionContext<'_>,
) -> Option<Diagnostic> {
    let needed = header.weight_bytes;
    if needed == 0 {
        return None;
    }
    let weights = path.with_extension("bin");
    let name = weights.file_name().unwrap_or_default().to_string_lossy();
    let text = match fs::metadata(&weights) {
        Ok(found) if found.len() >= needed => return None,
        Ok(found) => format!(
            "the file '{name}' with the weights of the model has {} bytes, but the model needs {needed}",
            found.len()
        ),
        Err(_) => format!("the file '{name}' with the weights of the model is missing"),
    };
    Some(
        Diagnostic::error(text)
            .with_advice("copy both files of the model from the same export")
            .at(version.place(path)),
    )
}

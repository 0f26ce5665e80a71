//! Explains faults of a model's file if the library's own message is unclear.

use std::path::Path;

use galatea_backend::{CompletionContext, explain};
use galatea_config::Diagnostic;
use galatea_types::Error;

use crate::{
    header::{Header, HeaderError},
    operators::lack,
};

/// Adds to the library's error the file's fault, if it can be seen without the library. `library`: the version of ONNX
/// Runtime.
pub(crate) fn explained(
    error: Error,
    path: &Path,
    context: &CompletionContext<'_>,
    library: &str,
) -> Error {
    let found = match Header::of_file(path) {
        Err(HeaderError::OrtFormat) if is_named_ort(path) => return error,
        Err(reason) => not_readable(&reason, path, context),
        Ok(header) => match header.missing_weights(path) {
            Some(missing) => weights_missing(missing, path, context),
            None if is_too_new(error.message()) => too_new(&header, library, path, context),
            None if lacks_locale(error.message()) => locale_missing(path, context),
            None => match lack(error.message(), path) {
                Some(lack) => lack.at(context.place(path)),
                None => return error,
            },
        },
    };
    explain(error, found)
}

/// Returns true if the library says that it does not know the file's version.
fn is_too_new(text: &str) -> bool {
    ["Unsupported model IR version", "Current official support for domain"]
        .iter()
        .any(|said| text.contains(said))
}

fn too_new(
    header: &Header,
    library: &str,
    path: &Path,
    context: &CompletionContext<'_>,
) -> Diagnostic {
    let Header { ir_version, opset, .. } = header;
    Diagnostic::error(format!(
        "the file has IR version {ir_version} and opset {opset}, which ONNX Runtime {library} does not know"
    ))
    .with_advice(
        "export the model with an earlier opset and IR version, or name a newer ONNX Runtime with --onnxruntime-lib",
    )
    .at(context.place(path))
}

/// Returns true if the library lacks the language that a node for texts names.
fn lacks_locale(text: &str) -> bool {
    text.contains("Failed to construct locale")
}

fn locale_missing(path: &Path, context: &CompletionContext<'_>) -> Diagnostic {
    Diagnostic::error("a node for texts (StringNormalizer) has the attribute 'locale', and this machine lacks that language")
        .with_advice(
            "install it (Debian: 'apt-get install locales', then 'localedef -i en_US -f UTF-8 en_US.UTF-8'), or export the model \
             with locale='C.UTF-8'",
        )
        .at(context.place(path))
}

/// Explains why a file is not an ONNX model.
pub(crate) fn not_readable(
    error: &HeaderError,
    path: &Path,
    context: &CompletionContext<'_>,
) -> Diagnostic {
    let advice = match error {
        HeaderError::OrtFormat => {
            "give it a name that ends in .ort, and set default_model_filename to that name"
        }
        _ => "export or copy the model again, and compare the sizes of both files",
    };
    Diagnostic::error(format!("the model's file cannot be loaded: {error}"))
        .with_advice(advice)
        .at(context.place(path))
}

/// Returns true if ONNX Runtime reads the file as its own format, which depends on the name.
pub(crate) fn is_named_ort(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ort")
}

/// Returns the message about a missing file of weights.
pub(crate) fn weights_missing(
    missing: &str,
    path: &Path,
    context: &CompletionContext<'_>,
) -> Diagnostic {
    let shown: String = missing.chars().flat_map(char::escape_debug).take(200).collect();
    Diagnostic::error(format!("the file '{shown}' with the weights of the model is missing"))
        .with_advice(
            "copy it beside the model's file: an ONNX model with external data is more than one file",
        )
        .at(context.place(path))
}

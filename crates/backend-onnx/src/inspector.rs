//! Looks at ONNX files without ONNX Runtime.

use std::path::Path;

use galatea_backend::{CannotTell, CompletionContext, Inspector};
use galatea_config::{ConfigDraft, Diagnostic, ModelConfig, Place};
use galatea_types::{Code, Error, Result};

use crate::{
    check, complete,
    header::{Header, HeaderError},
    model::find_model,
};

/// What the files of ONNX models tell before the backend `onnxruntime` loads them.
#[derive(Debug, Default)]
pub struct OnnxInspector;

impl Inspector for OnnxInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        runtime == "libtriton_onnxruntime.so"
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        if config.has_inputs() && config.has_outputs() {
            return Ok(config);
        }
        let path = find_model(context.version_dir, config.default_model_filename(), config.name())?;
        let header = read(&path, context)?;
        known_shapes(&header, context.model_name)?;
        complete::complete(config, &header.into_signature(), context)
    }

    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        let path = find_model(context.version_dir, config.default_model_filename(), config.name())?;
        let header = read(&path, context)?;
        if let Some(missing) = header.missing_weights(&path) {
            return Err(
                weights_missing(missing, &path, about(context)).into_error(Code::InvalidArg)
            );
        }
        let shapes = known_shapes(&header, context.model_name);
        match check::check(config, &header.into_signature()) {
            Err(_) if shapes.is_err() => shapes,
            checked => checked,
        }
    }
}

fn read(path: &Path, context: &CompletionContext<'_>) -> Result<Header> {
    let refuse = |error| not_readable(&error, path, about(context)).into_error(Code::InvalidArg);
    Header::of_file(path).map_err(refuse)
}

fn about<'a>(context: &CompletionContext<'a>) -> (&'a str, &'a Path) {
    (context.model_name, context.model_dir)
}

/// What ONNX Runtime infers from the graph is not in the declarations.
fn known_shapes(header: &Header, model: &str) -> Result<()> {
    match header.without_shape.first() {
        None => Ok(()),
        Some(name) => Err(CannotTell(format!(
            "the file of model '{model}' does not say the shape of '{name}': only ONNX Runtime can tell, when the model is \
             loaded"
        ))
        .into()),
    }
}

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

fn not_readable(error: &HeaderError, path: &Path, model: (&str, &Path)) -> Diagnostic {
    Diagnostic::error(format!("the model's file cannot be loaded: {error}"))
        .with_advice("export or copy the model again, and compare the sizes of both files")
        .at(place(path, model))
}

fn weights_missing(missing: &str, path: &Path, model: (&str, &Path)) -> Diagnostic {
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

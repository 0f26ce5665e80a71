//! Looks at ONNX files without ONNX Runtime.

use std::path::Path;

use galatea_backend::{CannotTell, CompletionContext, Inspector};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Code, Result};

use crate::{
    complete,
    file_faults::{not_readable, weights_missing},
    header::Header,
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
        match header.into_signature().declaration().check(config) {
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

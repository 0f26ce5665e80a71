//! Inspects ONNX files without ONNX Runtime.

use std::path::Path;

use galatea_backend::{CompletionContext, Inspector, MissingModelInfo};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Code, Error, Result};

use crate::{
    complete,
    file_faults::{is_named_ort, not_readable, weights_missing},
    header::{Header, HeaderError},
    model::find_model,
};

/// Inspector of ONNX files before the backend `onnxruntime` loads them.
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
            return Err(weights_missing(missing, &path, context).into_error(Code::InvalidArg));
        }
        let shapes = known_shapes(&header, context.model_name);
        match header.into_signature().declaration().check(config) {
            Err(_) if shapes.is_err() => shapes,
            checked => checked,
        }
    }

    fn mistakes(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Vec<Error> {
        let path = find_model(context.version_dir, config.default_model_filename(), config.name());
        let header = path.and_then(|path| read(&path, context));
        header.map_or_else(|_| Vec::new(), |h| h.into_signature().declaration().mistakes(config))
    }
}

fn read(path: &Path, context: &CompletionContext<'_>) -> Result<Header> {
    Header::of_file(path).map_err(|error| match error {
        HeaderError::OrtFormat if is_named_ort(path) => MissingModelInfo(format!(
            "the file of model '{}' is in ONNX Runtime's own format (ORT): its inputs and outputs are known once the \
             model is loaded",
            context.model_name
        ))
        .into(),
        error => not_readable(&error, path, context).into_error(Code::InvalidArg),
    })
}

/// Fails if a shape is not declared: only ONNX Runtime can infer it from the graph.
fn known_shapes(header: &Header, model: &str) -> Result<()> {
    match header.without_shape.first() {
        None => Ok(()),
        Some(name) => Err(MissingModelInfo(format!(
            "the file of model '{model}' does not say the shape of '{name}': ONNX Runtime finds it when the model is \
             loaded"
        ))
        .into()),
    }
}

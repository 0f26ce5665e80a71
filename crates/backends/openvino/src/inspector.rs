//! Inspects models for OpenVINO without its library.

use std::path::Path;

use galatea_backend::{CompletionContext, Inspector, MissingModelInfo};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Code, Error, Result};

use crate::{
    complete,
    file_faults::{is_ir, not_readable, wrong_weights},
    header::{Declared, Header, HeaderError},
    model::find_model,
    settings::Settings,
    signature::{self, Signature},
};

/// Inspector of models before the backend `openvino` loads them. IR files (`model.xml`) declare inputs and outputs. Only
/// OpenVINO can read those of other files.
#[derive(Debug, Default)]
pub struct OpenVinoInspector;

impl Inspector for OpenVinoInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        runtime == "libtriton_openvino.so"
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
        let can_batch = header.can_batch();
        complete::complete(config, &signature_of(header), can_batch, context)
    }

    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        Settings::read(config, context)?;
        let path = find_model(context.version_dir, config.default_model_filename(), config.name())?;
        let header = read(&path, context)?;
        if let Some(wrong) = wrong_weights(&header, &path, context) {
            return Err(wrong.into_error(Code::InvalidArg));
        }
        let signature = signature_of(header);
        signature.check_names(context.model_name)?;
        let (inputs, outputs) = signature.bind(config)?;
        signature::retypings(config, &inputs, &outputs)?;
        Ok(())
    }

    fn mistakes(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Vec<Error> {
        let path = find_model(context.version_dir, config.default_model_filename(), config.name());
        let header = path.and_then(|path| read(&path, context));
        header.map_or_else(|_| Vec::new(), |header| signature_of(header).unknown(config))
    }
}

fn read(path: &Path, context: &CompletionContext<'_>) -> Result<Header> {
    if !is_ir(path) {
        return Err(cannot_tell(context.model_name, "is not an IR file (.xml)"));
    }
    match Header::of_file(path) {
        Ok(header) => Ok(header),
        Err(HeaderError::TooLarge) => {
            Err(cannot_tell(context.model_name, "is too large to inspect"))
        }
        Err(error) => Err(not_readable(&error, path, context).into_error(Code::InvalidArg)),
    }
}

fn cannot_tell(model: &str, why: &str) -> galatea_types::Error {
    MissingModelInfo(format!(
        "the file of model '{model}' {why}: OpenVINO finds its inputs and outputs when the model is loaded"
    ))
    .into()
}

fn signature_of(header: Header) -> Signature {
    let infos = |all: Vec<Declared>| all.into_iter().map(|declared| declared.info).collect();
    Signature { inputs: infos(header.inputs), outputs: infos(header.outputs) }
}

/// Fails if a shape is unknown: a port without dimensions is a scalar or leaves their number open.
fn known_shapes(header: &Header, model: &str) -> Result<()> {
    let mut all = header.inputs.iter().chain(&header.outputs);
    match all.find(|declared| declared.info.dims.is_none()) {
        None => Ok(()),
        Some(open) => Err(MissingModelInfo(format!(
            "the file of model '{model}' does not say the shape of '{}': OpenVINO finds it when the model is loaded",
            open.info.name
        ))
        .into()),
    }
}

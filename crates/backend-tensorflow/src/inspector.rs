//! Looks at the files of TensorFlow models without TensorFlow.

use galatea_backend::{CompletionContext, Inspector};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::Result;

use crate::{
    complete,
    files::{ModelFiles, Version},
    model::{not_readable, signature_of},
    saved_model::nodes_of_file,
};

/// What the files of TensorFlow models tell before the backend `tensorflow` loads them.
#[derive(Debug, Default)]
pub struct TensorFlowInspector;

impl Inspector for TensorFlowInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        is_runtime(runtime)
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        complete_config(config, context)
    }

    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        let version = version_of(context);
        let files = ModelFiles::find(version, config.platform(), config.default_model_filename())?;
        let file = match &files {
            ModelFiles::SavedModel(_) => {
                let signature = signature_of(version, &files, config.parameters())?;
                return signature.declaration().check(config);
            }
            ModelFiles::Graph(file) => file,
        };
        let nodes = nodes_of_file(file).map_err(|error| not_readable(version, file, &error))?;
        let inputs = config.execution_inputs().iter().map(|spec| ("input", &spec.name));
        let outputs = config.model_outputs().iter().map(|spec| ("output", &spec.name));
        let unknown = inputs.chain(outputs).find(|(_, name)| !nodes.has(name));
        unknown.map_or(Ok(()), |(what, name)| Err(nodes.unexpected(what, name)))
    }
}

/// Triton's library of the backend; of one version of TensorFlow, as older ones were called, too.
pub(crate) fn is_runtime(runtime: &str) -> bool {
    matches!(runtime, "libtriton_tensorflow.so" | "libtriton_tensorflow2.so")
}

/// From the files alone: nothing of a model is run, and no library is needed.
pub(crate) fn complete_config(
    config: ConfigDraft,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    let version = version_of(context);
    let (platform, filename) =
        (config.raw().platform.clone(), config.default_model_filename().to_owned());
    let files = ModelFiles::find(version, &platform, &filename)?;
    if matches!(files, ModelFiles::Graph(_)) {
        // A graph does not say which of its nodes are its inputs and outputs.
        return Ok(config);
    }
    let signature = signature_of(version, &files, &config.parameters())?;
    complete::complete(config, &signature, context)
}

fn version_of<'a>(context: &CompletionContext<'a>) -> Version<'a> {
    Version {
        model: context.model_name,
        model_dir: context.model_dir,
        version_dir: context.version_dir,
    }
}

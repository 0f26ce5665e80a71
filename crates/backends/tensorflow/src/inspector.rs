//! Inspects the files of TensorFlow models without TensorFlow.

use galatea_backend::{CompletionContext, Inspector, MOST_MISTAKES};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::{Error, Result};

use crate::{
    complete,
    files::ModelFiles,
    model::{not_readable, signature_of},
    saved_model::{Nodes, nodes_of_file},
};

/// Inspector of TensorFlow models before the backend `tensorflow` loads them.
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
        let files = ModelFiles::find(context, config.platform(), config.default_model_filename())?;
        let file = match &files {
            ModelFiles::SavedModel(_) => {
                let signature = signature_of(context, &files, config.parameters())?;
                return signature.declaration().check(config);
            }
            ModelFiles::Graph(file) => file,
        };
        let nodes = nodes_of_file(file).map_err(|error| not_readable(context, file, &error))?;
        unknown(&nodes, config).next().map_or(Ok(()), Err)
    }

    fn mistakes(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Vec<Error> {
        let files = ModelFiles::find(context, config.platform(), config.default_model_filename());
        match files {
            Ok(files @ ModelFiles::SavedModel(_)) => {
                let signature = signature_of(context, &files, config.parameters());
                signature.map_or_else(|_| Vec::new(), |s| s.declaration().mistakes(config))
            }
            Ok(ModelFiles::Graph(file)) => nodes_of_file(&file).map_or_else(
                |_| Vec::new(),
                |nodes| unknown(&nodes, config).take(MOST_MISTAKES).collect(),
            ),
            Err(_) => Vec::new(),
        }
    }
}

/// Returns errors for tensors of the configuration that the graph does not have.
fn unknown<'a>(nodes: &'a Nodes, config: &'a ModelConfig) -> impl Iterator<Item = Error> + 'a {
    let inputs = config.execution_inputs().iter().map(|spec| ("input", &spec.name));
    let outputs = config.model_outputs().iter().map(|spec| ("output", &spec.name));
    let unknown = inputs.chain(outputs).filter(|(_, name)| !nodes.has(name));
    unknown.map(|(what, name)| nodes.unexpected(what, name))
}

/// Returns true for the name of Triton's library of the backend. Older ones were named after a version of TensorFlow.
pub(crate) fn is_runtime(runtime: &str) -> bool {
    matches!(runtime, "libtriton_tensorflow.so" | "libtriton_tensorflow2.so")
}

/// Completes a configuration from the files alone, without running a model or opening a library.
pub(crate) fn complete_config(
    config: ConfigDraft,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    let (platform, filename) =
        (config.raw().platform.clone(), config.default_model_filename().to_owned());
    let files = ModelFiles::find(context, &platform, &filename)?;
    if matches!(files, ModelFiles::Graph(_)) {
        // A graph does not say which of its nodes are its inputs and outputs.
        return Ok(config);
    }
    let signature = signature_of(context, &files, &config.parameters())?;
    complete::complete(config, &signature, context)
}

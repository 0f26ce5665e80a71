//! Reads the facts about the model that the tool needs from the server.

use std::pin::Pin;

use galatea_client::{Admin, ModelConfigFacts, ModelMetadata, TensorMetadata};
use galatea_perf_types::{
    failure::{Failure, Result},
    model::{ComposingModel, InputInfo, ModelInfo, OutputInfo, SchedulingKind},
    settings::Settings,
};

/// Reads the facts of the model under load from the server.
pub async fn read_model(admin: &mut Admin, settings: &Settings) -> Result<ModelInfo> {
    let (name, version) = (&settings.model_name, &settings.model_version);
    let metadata = admin.model_metadata(name, version).await.map_err(|error| {
        Failure::generic(format!("error: failed to get model metadata: {error}"))
    })?;
    let config = admin
        .model_config(name, version)
        .await
        .map_err(|error| Failure::generic(format!("error: failed to get model config: {error}")))?;
    let read_config = async |name: &str, version: &str| admin.model_config(name, version).await;
    model_info(settings, &metadata, &config, read_config).await
}

/// Builds the facts of the model under load. `read_config` asks the server for the configuration of another
/// model by name and version (empty: latest): the steps of ensembles, and `--bls-composing-models`.
pub async fn model_info<F>(
    settings: &Settings,
    metadata: &ModelMetadata,
    config: &ModelConfigFacts,
    mut read_config: F,
) -> Result<ModelInfo>
where
    F: AsyncFnMut(&str, &str) -> galatea_types::Result<ModelConfigFacts>,
{
    let mut inner =
        ComposingModels { read_config: &mut read_config, any_sequence: false, any_cache: false };
    let composing = inner.composing(config, &settings.bls_composing_models).await?;
    let (any_sequence, any_cache) = (inner.any_sequence, inner.any_cache);
    let is_batched = config.max_batch_size > 0;
    Ok(ModelInfo {
        name: metadata.name.clone(),
        version: settings.model_version.clone(),
        max_batch_size: config.max_batch_size,
        scheduling: scheduling(config, !composing.is_empty(), any_sequence),
        decoupled: config.decoupled,
        response_cache: config.response_cache || any_cache,
        top_level_response_cache: config.response_cache,
        inputs: inputs(settings, metadata, config, is_batched)?,
        outputs: outputs(metadata, is_batched),
        composing,
    })
}

fn failure(text: impl std::fmt::Display) -> Failure {
    Failure::generic(format!("error: failed to create model parser: {text}"))
}

fn scheduling(config: &ModelConfigFacts, has_inner: bool, any_sequence: bool) -> SchedulingKind {
    match (has_inner, config.sequence_batching) {
        (true, own) if own || any_sequence => SchedulingKind::EnsembleSequence,
        (true, _) => SchedulingKind::Ensemble,
        (false, true) => SchedulingKind::Sequence,
        (false, false) if config.dynamic_batching => SchedulingKind::Dynamic,
        (false, false) => SchedulingKind::None,
    }
}

/// Returns the inputs by name, the order of requests and errors.
fn inputs(
    settings: &Settings,
    metadata: &ModelMetadata,
    config: &ModelConfigFacts,
    is_batched: bool,
) -> Result<Vec<InputInfo>> {
    let configured = config.shape_tensors.iter().chain(&config.optional_inputs);
    for name in configured {
        if !metadata.inputs.iter().any(|input| input.name == *name) {
            return Err(failure(format!("no metadata found for input tensor {name}")));
        }
    }
    let mut inputs: Vec<InputInfo> = metadata
        .inputs
        .iter()
        .map(|input| InputInfo {
            name: input.name.clone(),
            data_type: input.data_type,
            shape: chosen_shape(settings, input, is_batched),
            is_shape_tensor: config.shape_tensors.contains(&input.name),
            optional: config.optional_inputs.contains(&input.name),
        })
        .collect();
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(inputs)
}

fn outputs(metadata: &ModelMetadata, is_batched: bool) -> Vec<OutputInfo> {
    let info = |output: &TensorMetadata| OutputInfo {
        name: output.name.clone(),
        data_type: output.data_type,
        shape: own_shape(output, is_batched),
    };
    let mut outputs: Vec<OutputInfo> = metadata.outputs.iter().map(info).collect();
    outputs.sort_by(|a, b| a.name.cmp(&b.name));
    outputs
}

/// Returns the shape to send. `--shape` decides only about inputs that leave it open.
fn chosen_shape(settings: &Settings, input: &TensorMetadata, is_batched: bool) -> Vec<i64> {
    let shape = own_shape(input, is_batched);
    match settings.data.shapes.get(&input.name) {
        Some(chosen) if shape.iter().any(|&dim| dim < 0) => chosen.clone(),
        _ => shape,
    }
}

fn own_shape(tensor: &TensorMetadata, is_batched: bool) -> Vec<i64> {
    tensor.shape.iter().skip(usize::from(is_batched)).copied().collect()
}

/// The models inside the model.
struct ComposingModels<'a, F> {
    read_config: &'a mut F,
    any_sequence: bool,
    any_cache: bool,
}

impl<F> ComposingModels<'_, F>
where
    F: AsyncFnMut(&str, &str) -> galatea_types::Result<ModelConfigFacts>,
{
    async fn composing(
        &mut self,
        config: &ModelConfigFacts,
        bls: &[(String, String)],
    ) -> Result<Vec<ComposingModel>> {
        let mut names = steps(config);
        names.extend_from_slice(bls);
        self.read(names, vec![config.name.clone()]).await
    }

    /// Reads the models. `within`: those around these. An ensemble that contains itself is not followed.
    fn read<'b>(
        &'b mut self,
        mut names: Vec<(String, String)>,
        within: Vec<String>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<ComposingModel>>> + 'b>> {
        names.sort();
        names.dedup();
        Box::pin(async move {
            let mut models = Vec::with_capacity(names.len());
            for (name, version) in names {
                let config = (self.read_config)(&name, &version).await.map_err(failure)?;
                self.any_sequence |= config.sequence_batching;
                self.any_cache |= config.response_cache;
                let mut inner_names = steps(&config);
                let around = [&within[..], std::slice::from_ref(&name)].concat();
                inner_names.retain(|(name, _)| !around.contains(name));
                let composing = self.read(inner_names, around).await?;
                models.push(ComposingModel { name, version, composing });
            }
            Ok(models)
        })
    }
}

fn steps(config: &ModelConfigFacts) -> Vec<(String, String)> {
    let version = |version: &i64| if *version < 0 { String::new() } else { version.to_string() };
    config.ensemble_steps.iter().map(|(name, step)| (name.clone(), version(step))).collect()
}

#[cfg(test)]
mod tests;

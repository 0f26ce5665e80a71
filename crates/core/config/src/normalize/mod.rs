//! Fills in defaults for the missing parts of a configuration.

use galatea_proto::inference::{
    ModelConfig, ModelInstanceGroup, ModelVersionPolicy,
    model_config::SchedulingChoice,
    model_instance_group::Kind,
    model_optimization_policy::PinnedMemoryBuffer,
    model_sequence_batching::StrategyChoice,
    model_version_policy::{Latest, PolicyChoice},
};
use galatea_types::{Error, Result};

use crate::{
    Diagnostic, RawModelConfig,
    backend_advice::NAME_A_BACKEND,
    backend_table::{MODEL_FILES, ModelFile, model_file_for_platform},
};

/// Idle time after which a sequence ends when the configuration gives none.
const DEFAULT_SEQUENCE_IDLE_MICROSECONDS: u64 = 1_000_000;

/// Facts about a model beside its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct NormalizeContext<'a> {
    /// Name of the model's folder.
    pub directory_name: &'a str,
    /// Names in the version folder that sorts lowest; empty when there is none. The name of a folder ends in `/`.
    pub version_files: &'a [String],
    /// Indices of the GPUs this server can use.
    pub available_gpus: &'a [u32],
}

/// A configuration with every default filled in, and facts that it no longer shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NormalizedConfig {
    /// The message with its defaults.
    pub raw: RawModelConfig,
    /// Indices in `raw.instance_group` whose count the configuration did not give.
    pub default_count_groups: Vec<usize>,
    /// Indices of the groups of kind AUTO that became groups for the CPU.
    pub automatic_cpu_groups: Vec<usize>,
}

/// Takes the message as it is: no count is a default.
impl From<RawModelConfig> for NormalizedConfig {
    fn from(raw: RawModelConfig) -> Self {
        Self { raw, ..Self::default() }
    }
}

/// Fills in name, backend, platform and model file name.
///
/// Runs before a backend completes the configuration; [`normalize`] includes it.
///
/// # Errors
/// `InvalidArg` when nothing names the backend.
pub fn resolve_backend(
    mut raw: RawModelConfig,
    context: &NormalizeContext<'_>,
) -> Result<RawModelConfig> {
    if raw.name.is_empty() {
        raw.name = context.directory_name.to_owned();
    }
    if let Some(file) = find_model_file(&raw, context) {
        fill_model_file(&mut raw, file);
    } else if is_unspecified(&raw) {
        fill_custom_backend(&mut raw, context.directory_name)?;
    }
    Ok(raw)
}

fn is_unspecified(raw: &RawModelConfig) -> bool {
    raw.platform.is_empty() && raw.backend.is_empty() && raw.default_model_filename.is_empty()
}

/// Finds the model file by the platform, then by the given file name, then by the backend, and last by the existing files.
fn find_model_file(
    raw: &RawModelConfig,
    context: &NormalizeContext<'_>,
) -> Option<&'static ModelFile> {
    let fits = |f: &&ModelFile| raw.backend.is_empty() || f.backend == raw.backend;
    let by_platform = || model_file_for_platform(&raw.platform).filter(fits);
    let by_filename =
        || MODEL_FILES.iter().filter(fits).find(|f| f.filename == raw.default_model_filename);
    let by_kind = || tensorflow_by_kind(raw, context);
    by_platform()
        .or_else(by_filename)
        .or_else(by_kind)
        .or_else(|| find_by_files(raw, context, fits))
}

/// Finds a TensorFlow model with a name of its own and no platform: a folder is a SavedModel, a file a graph.
fn tensorflow_by_kind(
    raw: &RawModelConfig,
    context: &NormalizeContext<'_>,
) -> Option<&'static ModelFile> {
    if raw.backend != "tensorflow" || !raw.platform.is_empty() {
        return None;
    }
    let given = raw.default_model_filename.as_str();
    let name = context.version_files.iter().find(|name| name.trim_end_matches('/') == given)?;
    let platform = match name.ends_with('/') {
        true => "tensorflow_savedmodel",
        false => "tensorflow_graphdef",
    };
    model_file_for_platform(platform)
}

fn find_by_files(
    raw: &RawModelConfig,
    context: &NormalizeContext<'_>,
    fits: impl Fn(&&ModelFile) -> bool,
) -> Option<&'static ModelFile> {
    let has_nothing = is_unspecified(raw);
    let is_there = |f: &&ModelFile| context.version_files.iter().any(|name| is_file(name, f));
    let may_look = raw.platform.is_empty() && raw.default_model_filename.is_empty();
    let found = MODEL_FILES.iter().filter(&fits).find(|f| may_look && is_there(f));
    if found.is_some() || has_nothing {
        return found;
    }
    // A graph and a saved model are loaded differently, so TensorFlow has no file to fall back on.
    let fallback = || MODEL_FILES.iter().filter(&fits).find(|f| f.backend != "tensorflow");
    if raw.backend.is_empty() { None } else { fallback() }
}

/// Returns whether the folder entry `name` is `file`, which for some backends must be a folder or must not.
fn is_file(name: &str, file: &ModelFile) -> bool {
    match name.strip_suffix('/') {
        None => name == file.filename,
        Some(folder) => {
            let may_be_folder = matches!(file.backend, "onnxruntime" | "python" | "openvino")
                || file.platform == "tensorflow_savedmodel";
            may_be_folder && folder == file.filename
        }
    }
}

fn fill_model_file(raw: &mut RawModelConfig, file: &ModelFile) {
    fill(&mut raw.backend, file.backend);
    fill(&mut raw.platform, file.platform);
    // A Python-based PyTorch model is found by its runtime, not by a TorchScript file.
    if !(file.backend == "pytorch" && raw.runtime == "model.py") {
        fill(&mut raw.default_model_filename, file.filename);
    }
}

fn fill(field: &mut String, default: &str) {
    if field.is_empty() {
        field.push_str(default);
    }
}

/// Takes the backend from the model's name: `x.identity` runs on the backend `identity`.
fn fill_custom_backend(raw: &mut RawModelConfig, model: &str) -> Result<()> {
    let Some((_, backend)) = model.split_once('.') else {
        let text = format!(
            "Invalid model name: Could not determine backend for model '{model}' with no backend \
             in model configuration. Expected model name of the form 'model.<backend_name>'."
        );
        let found = Diagnostic::error(text.as_str()).with_advice(NAME_A_BACKEND);
        return Err(Error::invalid_arg(text).with_source(found));
    };
    raw.default_model_filename = format!("model.{backend}");
    raw.backend = backend.to_owned();
    Ok(())
}

/// Fills in every default, so that clients can see the values that the server uses. A second call changes nothing, except that
/// the counts of the first call then pass for given ones.
///
/// # Errors
/// `InvalidArg` when nothing names the backend.
pub fn normalize(raw: RawModelConfig, context: &NormalizeContext<'_>) -> Result<NormalizedConfig> {
    let mut raw = resolve_backend(raw, context)?;
    raw.version_policy.get_or_insert(ModelVersionPolicy {
        policy_choice: Some(PolicyChoice::Latest(Latest { num_versions: 1 })),
    });
    fill_scheduling(&mut raw);
    if is_ensemble(&raw) {
        raw.model_transaction_policy.get_or_insert_default();
        return Ok(NormalizedConfig::from(raw));
    }
    let optimization = raw.optimization.get_or_insert_default();
    optimization.input_pinned_memory.get_or_insert(PinnedMemoryBuffer { enable: true });
    optimization.output_pinned_memory.get_or_insert(PinnedMemoryBuffer { enable: true });
    Ok(fill_instance_groups(raw, context.available_gpus))
}

fn is_ensemble(raw: &ModelConfig) -> bool {
    matches!(raw.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_)))
}

fn fill_scheduling(raw: &mut RawModelConfig) {
    let max_batch_size = raw.max_batch_size;
    let fill_preferred = |sizes: &mut Vec<i32>| {
        if sizes.is_empty() && max_batch_size > 0 {
            sizes.push(max_batch_size);
        }
    };
    match &mut raw.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            fill_preferred(&mut dynamic.preferred_batch_size);
        }
        Some(SchedulingChoice::SequenceBatching(sequence)) => {
            if sequence.max_sequence_idle_microseconds == 0 {
                sequence.max_sequence_idle_microseconds = DEFAULT_SEQUENCE_IDLE_MICROSECONDS;
            }
            if let Some(StrategyChoice::Oldest(oldest)) = &mut sequence.strategy_choice {
                fill_preferred(&mut oldest.preferred_batch_size);
            }
        }
        _ => {}
    }
}

fn fill_instance_groups(mut raw: RawModelConfig, available_gpus: &[u32]) -> NormalizedConfig {
    if raw.instance_group.is_empty() {
        let name = raw.name.clone();
        raw.instance_group.push(ModelInstanceGroup { name, ..Default::default() });
    }
    let gpus = available_gpus.iter().filter_map(|&g| i32::try_from(g).ok()).collect::<Vec<_>>();
    let (mut default_count_groups, mut automatic_cpu_groups) = (Vec::new(), Vec::new());
    for (index, group) in raw.instance_group.iter_mut().enumerate() {
        fill(&mut group.name, &format!("{}_{index}", raw.name));
        if group.kind() == Kind::Auto && group.kind == Kind::Auto as i32 {
            let is_usable = !gpus.is_empty() && group.gpus.iter().all(|g| gpus.contains(g));
            group.set_kind(if is_usable { Kind::Gpu } else { Kind::Cpu });
            if !is_usable {
                automatic_cpu_groups.push(index);
            }
        }
        if group.count < 1 {
            group.count = default_count(group.kind(), &raw.backend);
            default_count_groups.push(index);
        }
        if group.kind() == Kind::Gpu && group.gpus.is_empty() {
            group.gpus.clone_from(&gpus);
        }
    }
    NormalizedConfig { raw, default_count_groups, automatic_cpu_groups }
}

fn default_count(kind: Kind, backend: &str) -> i32 {
    let has_two = kind == Kind::Cpu && matches!(backend, "onnxruntime" | "tensorflow");
    if has_two { 2 } else { 1 }
}

#[cfg(test)]
mod tests;

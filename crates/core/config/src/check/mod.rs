//! Refuses configurations that cannot work, in Triton's words, and builds the checked form.

mod all_mistakes;
mod batch_delay;
mod batch_io;
mod context;
mod element;
mod ensemble;
mod instance_groups;
mod limits;
mod metrics;
mod mistake;
mod names;
mod optimization;
mod padding;
mod response_cache;
mod scheduling;
mod sequence;
mod states;
mod step_models;
mod tensors;
mod warmup;

use galatea_proto::inference::{self, model_config::SchedulingChoice};
use galatea_types::{Code, DataType};

pub use self::context::CheckContext;
use self::mistake::{Result, inside, mistake, refuse};
use crate::{
    InstanceGroup, ModelConfig, NormalizedConfig, RawModelConfig, Scheduling, TensorSpec,
    VersionPolicy, backend_table::ENSEMBLE_PLATFORM, draft,
};

impl ModelConfig {
    /// Checks a normalised configuration; see [`crate::normalize`].
    ///
    /// A bare [`RawModelConfig`] is accepted too; its counts then pass for given ones.
    ///
    /// # Errors
    /// `InvalidArg` with Triton's text for the first mistake. Its source is a [`crate::Diagnostic`] that names the field and
    /// gives advice.
    pub fn check(
        config: impl Into<NormalizedConfig>,
        context: &CheckContext<'_>,
    ) -> galatea_types::Result<ModelConfig> {
        checked(config.into(), context).map_err(|found| found.into_unplaced_error(Code::InvalidArg))
    }
}

/// Triton refuses a configuration in two phases, which clients can tell apart: when it reads the repository, and when it loads a
/// version. [`ModelConfig::check`] checks everything.
impl NormalizedConfig {
    /// Checks what no backend completes, before the backend is looked for. With `is_complete`, no backend will complete the
    /// inputs and outputs either.
    ///
    /// # Errors
    /// The errors of [`ModelConfig::check`].
    pub fn check_polled(
        &self,
        context: &CheckContext<'_>,
        is_complete: bool,
    ) -> galatea_types::Result<VersionPolicy> {
        let raw = &self.raw;
        let checked = polled(raw, context).and_then(|polled| {
            if is_complete {
                tensors::check_inputs(raw)?;
                tensors::check_outputs(raw)?;
                batch_io::check(raw)?;
            }
            Ok(polled.version_policy)
        });
        checked.map_err(|found| found.into_unplaced_error(Code::InvalidArg))
    }

    /// Checks the instance groups, which no backend completes either.
    ///
    /// # Errors
    /// The errors of [`ModelConfig::check`].
    pub fn check_instance_groups(&self, context: &CheckContext<'_>) -> galatea_types::Result<()> {
        let checked = limits::check(&self.raw).and_then(|()| {
            let scheduling = scheduling(&self.raw)?;
            instance_groups(self, &scheduling, context)
        });
        checked.map(drop).map_err(|found| found.into_unplaced_error(Code::InvalidArg))
    }
}

/// The parts of a configuration that are known once it was read.
struct ReadConfig {
    version_policy: VersionPolicy,
    max_batch_size: u32,
    /// The scheduler. A sequence batcher has no states yet.
    scheduling: Scheduling,
}

fn polled(raw: &RawModelConfig, context: &CheckContext<'_>) -> Result<ReadConfig> {
    names::check(raw, context)?;
    limits::check_steps(raw)?;
    let version_policy = version_policy(raw)?;
    let max_batch_size = max_batch_size(raw)?;
    let scheduling = scheduling(raw)?;
    response_cache::check(raw)?;
    metrics::check(raw.model_metrics.as_ref())?;
    Ok(ReadConfig { version_policy, max_batch_size, scheduling })
}

fn checked(config: NormalizedConfig, context: &CheckContext<'_>) -> Result<ModelConfig> {
    let raw = &config.raw;
    let ReadConfig { version_policy, max_batch_size, mut scheduling } = polled(raw, context)?;
    limits::check(raw)?;
    let instance_groups = instance_groups(&config, &scheduling, context)?;
    let (inputs, outputs) = (tensors::check_inputs(raw)?, tensors::check_outputs(raw)?);
    let (batch_inputs, batch_outputs) = batch_io::check(raw)?;
    if let Scheduling::Sequence(sequences) = &mut scheduling {
        sequences.states = states::check(raw)?;
    }
    let learns_delay = batch_delay::check(raw, &scheduling)?;
    if let Scheduling::Dynamic(dynamic) = &mut scheduling
        && learns_delay
    {
        batch_delay::apply(dynamic);
    }
    let (mut model_inputs, mut model_outputs) = (inputs.clone(), outputs.clone());
    if let Scheduling::Sequence(sequences) = &scheduling {
        model_inputs.extend(sequences.added_inputs());
        let is_new = |state: &TensorSpec| outputs.iter().all(|output| output.name != state.name);
        model_outputs.extend(sequences.state_outputs().filter(is_new));
    }
    let mut execution_inputs = model_inputs.clone();
    for batch_input in &batch_inputs {
        let source = inputs.iter().find(|input| input.name == batch_input.source);
        execution_inputs.extend(batch_input.specs(source));
    }
    let parameters = draft::parameters(raw);
    let padding = padding::check(raw, &parameters, &inputs, &outputs)?;
    Ok(ModelConfig {
        name: raw.name.as_str().into(),
        platform: raw.platform.clone(),
        backend: raw.backend.clone(),
        version_policy,
        max_batch_size,
        inputs,
        outputs,
        model_inputs,
        model_outputs,
        execution_inputs,
        batch_inputs,
        batch_outputs,
        optimization: optimization::read(raw),
        instance_groups,
        default_model_filename: raw.default_model_filename.clone(),
        scheduling,
        padding,
        parameters,
        metric_tags: raw.metric_tags.clone(),
        warmups: warmup::check(raw)?,
        is_decoupled: raw.model_transaction_policy.is_some_and(|p| p.decoupled),
        raw: config.raw,
    })
}

fn version_policy(raw: &RawModelConfig) -> Result<VersionPolicy> {
    let Some(policy) = &raw.version_policy else {
        let text = format!("must specify 'version policy' for {}", raw.name);
        let advice = "write `version_policy { latest { num_versions: 1 } }`";
        return refuse("version_policy", text, advice);
    };
    Ok(VersionPolicy::from(policy))
}

fn max_batch_size(raw: &RawModelConfig) -> Result<u32> {
    u32::try_from(raw.max_batch_size).map_err(|_| {
        let text = format!("'max_batch_size' must be non-negative value for {}", raw.name);
        let advice =
            "write the most requests that one batch may hold, or 0 for a model without a batch dimension";
        mistake("max_batch_size", text, advice)
    })
}

/// Returns the scheduler of a model.
fn scheduling(raw: &RawModelConfig) -> Result<Scheduling> {
    match &raw.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensembling)) => {
            ensemble::check(ensembling, raw).map(Scheduling::Ensemble)
        }
        _ if raw.platform == ENSEMBLE_PLATFORM => {
            let text = format!(
                "ensemble scheduling must be set for ensemble {} whose platform is ensemble",
                raw.name
            );
            let advice = "write `ensemble_scheduling { step [ { model_name: \"...\" model_version: -1 input_map { ... } \
                          output_map { ... } } ] }`";
            refuse("platform", text, advice)
        }
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            let checked = scheduling::check_dynamic(dynamic, raw).map(Scheduling::Dynamic);
            checked.map_err(inside("dynamic_batching"))
        }
        Some(SchedulingChoice::SequenceBatching(batcher)) => {
            let checked = sequence::check(batcher, raw).map(Scheduling::Sequence);
            checked.map_err(inside("sequence_batching"))
        }
        None => Ok(Scheduling::Direct),
    }
}

/// Returns the data type of this number in the message; `None` for the invalid type and for unknown numbers.
fn data_type(number: i32) -> Option<DataType> {
    let name = inference::DataType::try_from(number).ok()?.as_str_name();
    DataType::ALL.into_iter().find(|data_type| data_type.config_name() == name)
}

fn instance_groups(
    config: &NormalizedConfig,
    scheduling: &Scheduling,
    context: &CheckContext<'_>,
) -> Result<Vec<InstanceGroup>> {
    match scheduling {
        Scheduling::Ensemble(_) => Ok(Vec::new()),
        _ => instance_groups::check(config, context),
    }
}

#[cfg(test)]
mod tests;

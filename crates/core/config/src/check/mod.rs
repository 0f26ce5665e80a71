//! Refuses configurations that cannot work, in Triton's words, and builds the checked form.

mod advice;
mod all;
mod at;
mod batch_delay;
mod batch_io;
mod context;
mod data_type;
mod element;
mod ensemble;
mod error;
mod instance_groups;
mod limits;
mod metrics;
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

use std::collections::BTreeMap;

use galatea_proto::inference::{
    ModelSequenceBatching, ModelVersionPolicy, model_config::SchedulingChoice,
};

use self::at::{About, At};
pub use self::{
    batch_io::BatchIoError,
    context::CheckContext,
    ensemble::EnsembleError,
    error::ConfigError,
    instance_groups::{InstanceGroupError, KindProblem},
    limits::LimitError,
    metrics::MetricsError,
    names::NameError,
    padding::PaddingError,
    response_cache::ResponseCacheError,
    scheduling::BatchingError,
    sequence::SequenceError,
    states::StateError,
    step_models::{StepError, StepModelError},
    tensors::{TensorError, TensorProblem},
    warmup::WarmupError,
};
use crate::{
    BatchInput, BatchOutput, FieldPath, InstanceGroup, ModelConfig, NormalizedConfig,
    RawModelConfig, Scheduling, SequenceBatching, SequenceState, TensorSpec, VersionPolicy,
    backend_table::ENSEMBLE_PLATFORM,
};

type Result<T> = std::result::Result<T, At<ConfigError>>;

impl ModelConfig {
    /// Checks a normalised configuration; see [`crate::normalize`].
    ///
    /// A bare [`RawModelConfig`] is taken as well; its counts then pass for given ones.
    ///
    /// # Errors
    /// `InvalidArg` with Triton's text for the first thing found wrong; its source is a [`crate::Diagnostic`] that names the
    /// field, and what to do.
    pub fn check(
        config: impl Into<NormalizedConfig>,
        context: &CheckContext<'_>,
    ) -> galatea_types::Result<ModelConfig> {
        let config = config.into();
        let raw = config.raw.clone();
        checked(config, context).map_err(|error| advice::into_error(error, &raw))
    }
}

/// Triton refuses a configuration in two phases, which clients can tell apart: some things when it is read from its
/// repository, the rest when a version is loaded. [`ModelConfig::check`] looks at all of it.
impl NormalizedConfig {
    /// Looks at what makes a configuration unreadable, before its backend is looked for: all that no backend completes.
    /// `is_complete`: no backend will complete the inputs and outputs either.
    ///
    /// # Errors
    /// As those of [`ModelConfig::check`].
    pub fn check_polled(
        &self,
        context: &CheckContext<'_>,
        is_complete: bool,
    ) -> galatea_types::Result<VersionPolicy> {
        let raw = &self.raw;
        let checked = polled(raw, context).and_then(|polled| {
            if is_complete {
                tensors(raw)?;
                batch_io(raw)?;
            }
            Ok(polled.version_policy)
        });
        checked.map_err(|error| advice::into_error(error, raw))
    }

    /// Looks at the instance groups, which no backend completes either.
    ///
    /// # Errors
    /// As those of [`ModelConfig::check`].
    pub fn check_instance_groups(&self, context: &CheckContext<'_>) -> galatea_types::Result<()> {
        let checked = limits::check(&self.raw).map_err(At::widen).and_then(|()| {
            let scheduling = scheduling(&self.raw)?;
            instance_groups(self, &scheduling, context)
        });
        checked.map(drop).map_err(|error| advice::into_error(error, &self.raw))
    }
}

/// What is known of a configuration when it was read.
struct Polled {
    version_policy: VersionPolicy,
    max_batch_size: u32,
    /// A sequence batcher does not have its states yet.
    scheduling: Scheduling,
}

fn polled(raw: &RawModelConfig, context: &CheckContext<'_>) -> Result<Polled> {
    names::check(raw, context).map_err(At::widen)?;
    limits::check_steps(raw).map_err(At::widen)?;
    let version_policy = version_policy(raw.version_policy.as_ref(), &raw.name)?;
    let max_batch_size = max_batch_size(raw)?;
    let scheduling = scheduling(raw)?;
    response_cache::check(raw).map_err(At::widen)?;
    metrics::check(raw.model_metrics.as_ref()).map_err(At::widen)?;
    Ok(Polled { version_policy, max_batch_size, scheduling })
}

fn checked(config: NormalizedConfig, context: &CheckContext<'_>) -> Result<ModelConfig> {
    let raw = &config.raw;
    let Polled { version_policy, max_batch_size, mut scheduling } = polled(raw, context)?;
    limits::check(raw).map_err(At::widen)?;
    let instance_groups = instance_groups(&config, &scheduling, context)?;
    let (inputs, outputs) = tensors(raw)?;
    let (batch_inputs, batch_outputs) = batch_io(raw)?;
    if let Scheduling::Sequence(sequences) = &mut scheduling {
        sequences.states = states(raw)?;
    }
    let learns_delay = batch_delay::check(raw, &scheduling).map_err(At::widen)?;
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
    let parameters = parameters(raw);
    let padding = padding::check(&parameters, max_batch_size > 0, &inputs, &outputs);
    let padding = padding.map_err(|error| {
        error.map(|error| ConfigError::Padding { model: raw.name.clone(), error })
    })?;
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
        warmups: warmup::check(raw).map_err(At::widen)?,
        is_decoupled: raw.model_transaction_policy.is_some_and(|p| p.decoupled),
        raw: config.raw,
    })
}

fn version_policy(policy: Option<&ModelVersionPolicy>, model: &str) -> Result<VersionPolicy> {
    let Some(policy) = policy else {
        return Err(ConfigError::NoVersionPolicy { model: model.to_owned() }.at("version_policy"));
    };
    Ok(VersionPolicy::from(policy))
}

fn max_batch_size(raw: &RawModelConfig) -> Result<u32> {
    let model = || raw.name.clone();
    u32::try_from(raw.max_batch_size)
        .map_err(|_| ConfigError::NegativeBatchSize { model: model() }.at("max_batch_size"))
}

/// Which scheduler a model gets.
fn scheduling(raw: &RawModelConfig) -> Result<Scheduling> {
    let model = || raw.name.clone();
    match &raw.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensembling)) => {
            ensemble::check(ensembling, raw).map(Scheduling::Ensemble).map_err(At::widen)
        }
        _ if raw.platform == ENSEMBLE_PLATFORM => {
            let error = EnsembleError::NoScheduling { ensemble: model() };
            Err(error.at("platform").widen())
        }
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            let dynamic = scheduling::check_dynamic(dynamic, raw.max_batch_size);
            dynamic.map(Scheduling::Dynamic).map_err(|error| {
                let error = error.map(|error| ConfigError::Batching { model: model(), error });
                error.inside("dynamic_batching")
            })
        }
        Some(SchedulingChoice::SequenceBatching(batcher)) => {
            sequences(batcher, raw).map(Scheduling::Sequence)
        }
        None => Ok(Scheduling::Direct),
    }
}

fn sequences(batcher: &ModelSequenceBatching, raw: &RawModelConfig) -> Result<SequenceBatching> {
    sequence::check(batcher, raw.max_batch_size)
        .map_err(|error| {
            error.map(|error| ConfigError::Sequence { model: raw.name.clone(), error })
        })
        .map_err(|error| error.inside("sequence_batching"))
}

fn states(raw: &RawModelConfig) -> Result<Vec<SequenceState>> {
    let Some(SchedulingChoice::SequenceBatching(batcher)) = &raw.scheduling_choice else {
        return Ok(Vec::new());
    };
    let state = |(index, state)| {
        let field = FieldPath::from("sequence_batching.state").index(index);
        states::check(state).map_err(|error| error.inside(field).widen())
    };
    batcher.state.iter().enumerate().map(state).collect()
}

fn batch_io(raw: &RawModelConfig) -> Result<(Vec<BatchInput>, Vec<BatchOutput>)> {
    batch_io::check(raw)
        .map_err(|error| error.map(|error| ConfigError::BatchIo { model: raw.name.clone(), error }))
}

fn tensors(raw: &RawModelConfig) -> Result<(Vec<TensorSpec>, Vec<TensorSpec>)> {
    let of_model =
        |error: At<_>| error.map(|error| ConfigError::Tensor { model: raw.name.clone(), error });
    let inputs = tensors::check_inputs(raw).map_err(of_model)?;
    Ok((inputs, tensors::check_outputs(raw).map_err(of_model)?))
}

fn instance_groups(
    config: &NormalizedConfig,
    scheduling: &Scheduling,
    context: &CheckContext<'_>,
) -> Result<Vec<InstanceGroup>> {
    match scheduling {
        Scheduling::Ensemble(_) => Ok(Vec::new()),
        _ => instance_groups::check(config, context).map_err(At::widen),
    }
}

fn parameters(raw: &RawModelConfig) -> BTreeMap<String, String> {
    raw.parameters.iter().map(|(k, v)| (k.clone(), v.string_value.clone())).collect()
}

#[cfg(test)]
mod tests;

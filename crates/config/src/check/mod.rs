//! Refuses configurations that cannot work, in Triton's words, and builds the checked form.

mod batch_io;
mod ensemble;
mod instance_groups;
mod optimization;
mod scheduling;
mod sequence;
mod step_models;
mod tensors;
mod warmup;

use std::collections::BTreeMap;

use galatea_proto::inference::{
    ModelMetrics, ModelVersionPolicy, model_config::SchedulingChoice,
    model_metrics::metric_control::MetricOptions, model_repository_agents::Agent,
    model_version_policy::PolicyChoice,
};
use galatea_types::{Error, Result};

use crate::{
    ModelConfig, NormalizedConfig, RawModelConfig, RepositoryAgent, VersionPolicy,
    backend_table::{ENSEMBLE_PLATFORM, backend_for_platform, has_platforms},
};

/// What a configuration is checked against.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckContext<'a> {
    /// Name of the model's folder, which the model's name must equal.
    pub directory_name: &'a str,
    /// Whether this server can run anything on GPUs at all.
    pub supports_gpus: bool,
    /// Indices of the GPUs this server can use.
    pub available_gpus: &'a [u32],
    /// Lowest CUDA compute capability of a GPU for this server to use it.
    pub min_compute_capability: f64,
}

impl ModelConfig {
    /// Checks a normalised configuration; see [`crate::normalize`].
    ///
    /// A bare [`RawModelConfig`] is taken as well; its counts then pass for given ones.
    ///
    /// # Errors
    /// `InvalidArg` with Triton's text for the first thing found wrong.
    pub fn check(
        config: impl Into<NormalizedConfig>,
        context: &CheckContext<'_>,
    ) -> Result<ModelConfig> {
        let config = config.into();
        let raw = &config.raw;
        check_names(raw, context)?;
        let checked = ModelConfig {
            name: raw.name.as_str().into(),
            platform: raw.platform.clone(),
            backend: raw.backend.clone(),
            version_policy: version_policy(raw.version_policy.as_ref(), &raw.name)?,
            max_batch_size: max_batch_size(raw)?,
            scheduling: scheduling::check(raw)?,
            inputs: tensors::check_inputs(raw)?,
            outputs: tensors::check_outputs(raw)?,
            instance_groups: instance_groups::check(&config, context)?,
            default_model_filename: raw.default_model_filename.clone(),
            batch_inputs: Vec::new(),
            batch_outputs: Vec::new(),
            optimization: optimization::read(raw),
            warmups: Vec::new(),
            repository_agents: repository_agents(raw),
            parameters: parameters(raw),
            metric_tags: raw.metric_tags.clone(),
            is_decoupled: raw.model_transaction_policy.is_some_and(|p| p.decoupled),
            raw: RawModelConfig::default(),
        };
        let (batch_inputs, batch_outputs) = batch_io::check(raw)?;
        check_response_cache(raw)?;
        check_metrics(raw.model_metrics.as_ref())?;
        let warmups = warmup::check(raw)?;
        Ok(ModelConfig { batch_inputs, batch_outputs, warmups, raw: config.raw, ..checked })
    }
}

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::invalid_arg(message))
}

fn check_names(raw: &RawModelConfig, context: &CheckContext<'_>) -> Result<()> {
    let RawModelConfig { name, platform, backend, .. } = raw;
    let directory = context.directory_name;
    if name.is_empty() {
        return refuse("model configuration must specify 'name'".to_owned());
    }
    if name != directory {
        return refuse(format!(
            "unexpected directory name '{directory}' for model '{name}', directory name must equal \
             model name"
        ));
    }
    let is_ensemble = platform == ENSEMBLE_PLATFORM;
    match (backend.is_empty(), is_ensemble) {
        (true, false) if platform.is_empty() => {
            refuse(format!("must specify 'platform' or 'backend' for '{name}'"))
        }
        (true, false) => refuse(format!("unexpected platform type '{platform}' for {name}")),
        (false, true) => refuse(format!(
            "Ensemble model '{name}' must have platform type '{platform}' and empty backend type"
        )),
        (true, true) => Ok(()),
        (false, false) => check_pair(platform, backend),
    }
}

/// A backend with platforms of its own takes only these; any other takes whatever is written.
fn check_pair(platform: &str, backend: &str) -> Result<()> {
    if has_platforms(backend) && backend_for_platform(platform) != Some(backend) {
        return refuse(format!(
            "unexpected 'platform' and 'backend' pair, got:{platform}, {backend}"
        ));
    }
    Ok(())
}

fn max_batch_size(raw: &RawModelConfig) -> Result<u32> {
    u32::try_from(raw.max_batch_size).map_err(|_| {
        Error::invalid_arg(format!("'max_batch_size' must be non-negative value for {}", raw.name))
    })
}

fn version_policy(policy: Option<&ModelVersionPolicy>, model: &str) -> Result<VersionPolicy> {
    let Some(policy) = policy else {
        return refuse(format!("must specify 'version policy' for {model}"));
    };
    Ok(match &policy.policy_choice {
        Some(PolicyChoice::Latest(latest)) => VersionPolicy::Latest(latest.num_versions),
        Some(PolicyChoice::Specific(specific)) => {
            VersionPolicy::Specific(specific.versions.clone())
        }
        Some(PolicyChoice::All(_)) | None => VersionPolicy::All,
    })
}

fn parameters(raw: &RawModelConfig) -> BTreeMap<String, String> {
    raw.parameters.iter().map(|(k, v)| (k.clone(), v.string_value.clone())).collect()
}

fn repository_agents(raw: &RawModelConfig) -> Vec<RepositoryAgent> {
    let agents = raw.model_repository_agents.iter().flat_map(|a| &a.agents);
    let agent =
        |a: &Agent| RepositoryAgent { name: a.name.clone(), parameters: a.parameters.clone() };
    agents.map(agent).collect()
}

fn check_response_cache(raw: &RawModelConfig) -> Result<()> {
    if !raw.response_cache.is_some_and(|c| c.enable) {
        return Ok(());
    }
    let name = &raw.name;
    if matches!(raw.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))) {
        return refuse(format!(
            "Response Cache does not currently support model {name} with sequence batching \
             scheduler. Please disable the response cache."
        ));
    }
    if raw.model_transaction_policy.is_some_and(|p| p.decoupled) {
        return refuse(format!(
            "Response Cache does not currently support model {name} with 'decoupled' transaction \
             policy. Please disable the response cache."
        ));
    }
    Ok(())
}

fn check_metrics(metrics: Option<&ModelMetrics>) -> Result<()> {
    for control in metrics.iter().flat_map(|m| &m.metric_control) {
        let reason = match (&control.metric_identifier, &control.metric_options) {
            (None, _) => "metric control must specify 'metric_identifier'",
            (Some(identifier), _) if identifier.family.is_empty() => {
                "metric identifier must specify non-empty 'family'"
            }
            (_, None) => "metric control must specify 'histogram_options'",
            (_, Some(MetricOptions::HistogramOptions(o))) if o.buckets.is_empty() => {
                "histogram options must specify non-empty 'buckets'"
            }
            _ => continue,
        };
        return refuse(reason.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

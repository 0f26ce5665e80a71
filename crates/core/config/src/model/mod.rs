//! A model's configuration after defaults and checks.

mod instance;
mod optimization;
mod padding;
mod scheduling;
mod sequence;
mod tensor;
mod warmup;

use std::{collections::BTreeMap, sync::Arc};

use galatea_proto::inference::{
    ModelVersionPolicy, model_metrics::metric_control::MetricOptions,
    model_version_policy::PolicyChoice,
};
use galatea_types::Shape;

pub use self::{
    instance::{InstanceGroup, InstanceKind, MissingGpus, RateLimiter, RateLimiterResource},
    optimization::{Accelerator, ModelPriority, Optimization},
    padding::{PaddedInput, PaddedOutput, Padding, PaddingMask},
    scheduling::{
        DynamicBatching, EnsembleStep, Ensembling, QueuePolicy, Scheduling, TimeoutAction,
    },
    sequence::{
        ControlKind, FalseTrue, InitialData, InitialState, SequenceBatching, SequenceControl,
        SequenceState, SequenceStrategy,
    },
    tensor::{BatchInput, BatchInputKind, BatchOutput, BatchOutputKind, TensorSpec, names_of},
    warmup::{Warmup, WarmupData, WarmupInput},
};
use crate::RawModelConfig;

/// A model's configuration after defaults and checks. Only [`ModelConfig::check`] builds one, and nothing
/// changes it afterwards.
///
/// ```compile_fail,E0616
/// fn change(mut config: galatea_config::ModelConfig) {
///     config.max_batch_size = 8;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ModelConfig {
    pub(crate) name: Arc<str>,
    /// Empty when only a backend was given.
    pub(crate) platform: String,
    pub(crate) backend: String,
    pub(crate) version_policy: VersionPolicy,
    /// 0: the model takes no batch dimension.
    pub(crate) max_batch_size: u32,
    pub(crate) inputs: Vec<TensorSpec>,
    pub(crate) outputs: Vec<TensorSpec>,
    pub(crate) model_inputs: Vec<TensorSpec>,
    pub(crate) model_outputs: Vec<TensorSpec>,
    pub(crate) execution_inputs: Vec<TensorSpec>,
    pub(crate) batch_inputs: Vec<BatchInput>,
    pub(crate) batch_outputs: Vec<BatchOutput>,
    pub(crate) optimization: Optimization,
    pub(crate) instance_groups: Vec<InstanceGroup>,
    pub(crate) default_model_filename: String,
    pub(crate) scheduling: Scheduling,
    pub(crate) padding: Option<Padding>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) metric_tags: BTreeMap<String, String>,
    pub(crate) warmups: Vec<Warmup>,
    pub(crate) is_decoupled: bool,
    /// The normalised message this was checked from, with every default filled in: what clients are shown.
    pub(crate) raw: RawModelConfig,
}

impl ModelConfig {
    /// The name of the model, which is the name of its folder.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// E.g. `onnxruntime_onnx`; empty when only a backend was given.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// The name of the backend that runs the model; empty for an ensemble.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Which of the versions in the model's folder are served.
    pub fn version_policy(&self) -> &VersionPolicy {
        &self.version_policy
    }

    /// The most items of a batch. 0: the model takes no batch dimension.
    pub fn max_batch_size(&self) -> u32 {
        self.max_batch_size
    }

    /// The inputs in the order of the configuration.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// The outputs in the order of the configuration.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// The inputs that an execution of the model takes from its requests: [`ModelConfig::inputs`], and behind them those
    /// that a sequence batcher adds to each request, controls and states.
    pub fn model_inputs(&self) -> &[TensorSpec] {
        &self.model_inputs
    }

    /// The outputs of the model: [`ModelConfig::outputs`], and behind them those that are only states of a sequence.
    pub fn model_outputs(&self) -> &[TensorSpec] {
        &self.model_outputs
    }

    /// All inputs that the model itself has: [`ModelConfig::model_inputs`], and behind them, in order, the targets of
    /// [`ModelConfig::batch_inputs`], with their whole shapes as `dims`.
    pub fn execution_inputs(&self) -> &[TensorSpec] {
        &self.execution_inputs
    }

    /// The shape, batch dimension included, that the model itself has for one of its inputs or outputs: as far as the
    /// configuration says it.
    pub fn shape_in_model(&self, spec: &TensorSpec) -> Shape {
        if spec.allows_ragged_batch {
            // The elements of all requests, one behind the other.
            return Shape::from([-1]);
        }
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        match self.has_batching() && self.batch_input_for(&spec.name).is_none() {
            true => dims.with_leading(-1),
            false => dims.clone(),
        }
    }

    /// What fills the input `name` of the model, where that is not requests.
    pub fn batch_input_for(&self, name: &str) -> Option<&BatchInput> {
        self.batch_inputs.iter().find(|input| input.targets.iter().any(|target| &**target == name))
    }

    /// What divides the output `name` among requests, where that is not its first dimension.
    pub fn batch_output_for(&self, name: &str) -> Option<&BatchOutput> {
        let mut outputs = self.batch_outputs.iter();
        outputs.find(|output| output.targets.iter().any(|target| &**target == name))
    }

    /// Whether this output of the model is a state of its sequences.
    pub fn is_state(&self, output: &str) -> bool {
        match &self.scheduling {
            Scheduling::Sequence(batching) => batching.states.iter().any(|s| &*s.output == output),
            _ => false,
        }
    }

    /// Inputs that the server makes from the shapes of a ragged batch.
    pub fn batch_inputs(&self) -> &[BatchInput] {
        &self.batch_inputs
    }

    /// Outputs divided by the shapes of a ragged batch.
    pub fn batch_outputs(&self) -> &[BatchOutput] {
        &self.batch_outputs
    }

    /// Hints that change how fast the model runs.
    pub fn optimization(&self) -> &Optimization {
        &self.optimization
    }

    /// Where instances run and how many; empty for an ensemble.
    pub fn instance_groups(&self) -> &[InstanceGroup] {
        &self.instance_groups
    }

    /// The file or folder of the model inside a version folder; empty when the backend has no default.
    pub fn default_model_filename(&self) -> &str {
        &self.default_model_filename
    }

    /// How requests become executions.
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// How requests that differ in open dimensions are padded together; `None`: they are not.
    pub fn padding(&self) -> Option<&Padding> {
        self.padding.as_ref()
    }

    /// `parameters` of the configuration: settings for the backend.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Labels that the model's metrics carry.
    pub fn metric_tags(&self) -> &BTreeMap<String, String> {
        &self.metric_tags
    }

    /// `model_metrics`: names of families of histograms, each with the upper bounds of its buckets.
    pub fn histogram_buckets(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let controls = self.raw.model_metrics.iter().flat_map(|metrics| &metrics.metric_control);
        controls.filter_map(|control| {
            let MetricOptions::HistogramOptions(options) = control.metric_options.as_ref()?;
            Some((control.metric_identifier.as_ref()?.family.as_str(), &*options.buckets))
        })
    }

    /// Requests that each instance executes before those of clients.
    pub fn warmups(&self) -> &[Warmup] {
        &self.warmups
    }

    /// The runtime inside the backend that runs the model; empty: the backend's default.
    pub fn runtime(&self) -> &str {
        &self.raw.runtime
    }

    /// Libraries of custom operators, relative to the version's folder or the model's.
    pub fn operator_libraries(&self) -> &[String] {
        self.raw.model_operations.as_ref().map_or(&[], |o| &o.op_library_filename)
    }

    /// Whether responses may be answered from the server's response cache.
    pub fn caches_responses(&self) -> bool {
        self.raw.response_cache.is_some_and(|cache| cache.enable)
    }

    /// Whether a request may have any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.is_decoupled
    }

    /// The normalised message this was checked from, with every default filled in: what clients are shown.
    pub fn raw(&self) -> &RawModelConfig {
        &self.raw
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&TensorSpec> {
        self.inputs.iter().find(|t| &*t.name == name)
    }

    /// The output of this name.
    pub fn output(&self, name: &str) -> Option<&TensorSpec> {
        self.outputs.iter().find(|t| &*t.name == name)
    }

    /// Whether tensors have a batch dimension before those of the configuration.
    pub fn has_batching(&self) -> bool {
        self.max_batch_size > 0
    }
}

/// Which of the versions in a model's folder are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// This many, those with the highest numbers.
    Latest(u32),
    /// Every one.
    All,
    /// These.
    Specific(Vec<i64>),
}

impl From<&ModelVersionPolicy> for VersionPolicy {
    fn from(policy: &ModelVersionPolicy) -> Self {
        match &policy.policy_choice {
            Some(PolicyChoice::Latest(latest)) => Self::Latest(latest.num_versions),
            Some(PolicyChoice::Specific(specific)) => Self::Specific(specific.versions.clone()),
            Some(PolicyChoice::All(_)) | None => Self::All,
        }
    }
}

impl VersionPolicy {
    /// Reads a configuration as it is written: the latest version where it says nothing.
    pub fn of(raw: &RawModelConfig) -> Self {
        raw.version_policy.as_ref().map_or(Self::Latest(1), Self::from)
    }
}

/// Something that a model's files go through before they are loaded, such as a checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryAgent {
    /// E.g. `checksum`.
    pub name: String,
    /// What it is given.
    pub parameters: BTreeMap<String, String>,
}

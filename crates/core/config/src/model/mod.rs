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

/// A model's configuration after defaults and checks. Only [`ModelConfig::check`] makes one, and nothing changes it afterwards.
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
    /// The normalised message behind this value, with every default filled in. Clients see it.
    pub(crate) raw: RawModelConfig,
}

impl ModelConfig {
    /// Returns the name of the model, which is the name of its folder.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the platform, e.g. `onnxruntime_onnx`; empty when only a backend was given.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// Returns the name of the backend that runs the model; empty for an ensemble.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Returns the policy that selects the served versions from the model's folder.
    pub fn version_policy(&self) -> &VersionPolicy {
        &self.version_policy
    }

    /// Returns the most items of a batch. 0 means that the model takes no batch dimension.
    pub fn max_batch_size(&self) -> u32 {
        self.max_batch_size
    }

    /// Returns the inputs in the order of the configuration.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// Returns the outputs in the order of the configuration.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// Returns the inputs that an execution takes from its requests: [`ModelConfig::inputs`], then the controls and states that a
    /// sequence batcher adds to each request.
    pub fn model_inputs(&self) -> &[TensorSpec] {
        &self.model_inputs
    }

    /// Returns the outputs of the model: [`ModelConfig::outputs`], then those that are only states of a sequence.
    pub fn model_outputs(&self) -> &[TensorSpec] {
        &self.model_outputs
    }

    /// Returns all inputs of the model itself: [`ModelConfig::model_inputs`], then, in order, the targets of
    /// [`ModelConfig::batch_inputs`], with their whole shapes as `dims`.
    pub fn execution_inputs(&self) -> &[TensorSpec] {
        &self.execution_inputs
    }

    /// Returns the shape, with batch dimension, that an input or output has in the model itself, if the configuration gives it.
    pub fn shape_in_model(&self, spec: &TensorSpec) -> Shape {
        if spec.allows_ragged_batch {
            // The elements of all requests, one after the other.
            return Shape::from([-1]);
        }
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        match self.has_batching() && self.batch_input_for(&spec.name).is_none() {
            true => dims.with_leading(-1),
            false => dims.clone(),
        }
    }

    /// Returns the batch input that fills the model's input `name`; `None` when requests fill it.
    pub fn batch_input_for(&self, name: &str) -> Option<&BatchInput> {
        self.batch_inputs.iter().find(|input| input.targets.iter().any(|target| &**target == name))
    }

    /// Returns the batch output that divides the output `name` among requests; `None` when its first dimension does.
    pub fn batch_output_for(&self, name: &str) -> Option<&BatchOutput> {
        let mut outputs = self.batch_outputs.iter();
        outputs.find(|output| output.targets.iter().any(|target| &**target == name))
    }

    /// Returns whether this output of the model is a state of its sequences.
    pub fn is_state(&self, output: &str) -> bool {
        match &self.scheduling {
            Scheduling::Sequence(batching) => batching.states.iter().any(|s| &*s.output == output),
            _ => false,
        }
    }

    /// Returns the inputs that the server makes from the shapes of a ragged batch.
    pub fn batch_inputs(&self) -> &[BatchInput] {
        &self.batch_inputs
    }

    /// Returns the outputs that are divided by the shapes of a ragged batch.
    pub fn batch_outputs(&self) -> &[BatchOutput] {
        &self.batch_outputs
    }

    /// Returns the hints that change the speed of the model.
    pub fn optimization(&self) -> &Optimization {
        &self.optimization
    }

    /// Returns the groups of instances; empty for an ensemble.
    pub fn instance_groups(&self) -> &[InstanceGroup] {
        &self.instance_groups
    }

    /// Returns the file or folder of the model inside a version folder; empty when the backend has no default.
    pub fn default_model_filename(&self) -> &str {
        &self.default_model_filename
    }

    /// Returns the scheduler of the model.
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// Returns the padding of requests that differ in open dimensions; `None` when they are not padded.
    pub fn padding(&self) -> Option<&Padding> {
        self.padding.as_ref()
    }

    /// Returns `parameters` of the configuration: settings for the backend.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Returns the labels of the model's metrics.
    pub fn metric_tags(&self) -> &BTreeMap<String, String> {
        &self.metric_tags
    }

    /// Returns `model_metrics`: names of families of histograms, each with the upper bounds of its buckets.
    pub fn histogram_buckets(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let controls = self.raw.model_metrics.iter().flat_map(|metrics| &metrics.metric_control);
        controls.filter_map(|control| {
            let MetricOptions::HistogramOptions(options) = control.metric_options.as_ref()?;
            Some((control.metric_identifier.as_ref()?.family.as_str(), &*options.buckets))
        })
    }

    /// Returns the requests that each instance executes before those of clients.
    pub fn warmups(&self) -> &[Warmup] {
        &self.warmups
    }

    /// Returns the runtime inside the backend that runs the model; empty for the backend's default.
    pub fn runtime(&self) -> &str {
        &self.raw.runtime
    }

    /// Returns the libraries of custom operators, relative to the version's folder or the model's.
    pub fn operator_libraries(&self) -> &[String] {
        self.raw.model_operations.as_ref().map_or(&[], |o| &o.op_library_filename)
    }

    /// Returns whether responses may come from the server's response cache.
    pub fn caches_responses(&self) -> bool {
        self.raw.response_cache.is_some_and(|cache| cache.enable)
    }

    /// Returns whether a request may have any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.is_decoupled
    }

    /// Returns the normalised message behind this value, with every default filled in. Clients see it.
    pub fn raw(&self) -> &RawModelConfig {
        &self.raw
    }

    /// Returns the input of this name.
    pub fn input(&self, name: &str) -> Option<&TensorSpec> {
        self.inputs.iter().find(|t| &*t.name == name)
    }

    /// Returns the output of this name.
    pub fn output(&self, name: &str) -> Option<&TensorSpec> {
        self.outputs.iter().find(|t| &*t.name == name)
    }

    /// Returns whether tensors have a batch dimension before those of the configuration.
    pub fn has_batching(&self) -> bool {
        self.max_batch_size > 0
    }
}

/// The policy that selects the served versions from a model's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// The versions with the highest numbers, at most this many.
    Latest(u32),
    /// Every version.
    All,
    /// These versions.
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
    /// Reads a configuration as written: the latest version when it names no policy.
    pub fn of(raw: &RawModelConfig) -> Self {
        raw.version_policy.as_ref().map_or(Self::Latest(1), Self::from)
    }
}

/// An agent that processes a model's files before the load, such as a checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryAgent {
    /// The name, e.g. `checksum`.
    pub name: String,
    /// The parameters of the agent.
    pub parameters: BTreeMap<String, String>,
}

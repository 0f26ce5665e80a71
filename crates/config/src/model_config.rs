use std::{collections::BTreeMap, sync::Arc, time::Duration};

use galatea_types::{DataType, Shape};

use crate::RawModelConfig;

/// A model's configuration after defaults and checks. Only the validator builds one.
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
    pub(crate) instance_groups: Vec<InstanceGroup>,
    pub(crate) default_model_filename: String,
    pub(crate) scheduling: Scheduling,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) metric_tags: BTreeMap<String, String>,
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

    /// `parameters` of the configuration: settings for the backend.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Labels that the model's metrics carry.
    pub fn metric_tags(&self) -> &BTreeMap<String, String> {
        &self.metric_tags
    }

    /// Whether a request may have any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.is_decoupled
    }

    /// The normalised message this was checked from, with every default filled in: what clients are shown.
    pub fn raw(&self) -> &RawModelConfig {
        &self.raw
    }

    pub fn input(&self, name: &str) -> Option<&TensorSpec> {
        self.inputs.iter().find(|t| &*t.name == name)
    }

    pub fn output(&self, name: &str) -> Option<&TensorSpec> {
        self.outputs.iter().find(|t| &*t.name == name)
    }

    pub fn has_batching(&self) -> bool {
        self.max_batch_size > 0
    }
}

/// An input or output as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    pub name: Arc<str>,
    pub data_type: DataType,
    /// Without the batch dimension; -1 is any size.
    pub dims: Shape,
    /// The shape the model itself wants (without the batch dimension), when it differs from `dims`.
    pub reshape: Option<Shape>,
    pub format: Format,
    /// Inputs only: a request may leave it out.
    pub is_optional: bool,
    /// Inputs only: requests with different shapes may share a batch.
    pub allows_ragged_batch: bool,
    /// Outputs only: file with one class label per line, relative to the model's folder.
    pub label_filename: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    None,
    Nhwc,
    Nchw,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    Latest(u32),
    All,
    Specific(Vec<i64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    Cpu,
    Gpu,
    Model,
}

/// Instances of one kind, after defaults: the kind is never AUTO, the count never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceGroup {
    pub name: String,
    pub kind: InstanceKind,
    pub count: u32,
    pub gpus: Vec<u32>,
    pub is_passive: bool,
    /// The file gave no count, so the default applies and a backend may choose a better layout.
    pub is_count_default: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Scheduling {
    /// Each request is one execution.
    Direct,
    Dynamic(DynamicBatching),
    Sequence,
    Ensemble(Ensembling),
}

/// A graph of models. Ensemble tensors are known by name; each is an input of the ensemble or written by
/// exactly one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ensembling {
    pub steps: Vec<EnsembleStep>,
    /// Requests a step may have under way at once, over all requests to the ensemble. 0: no limit.
    pub max_inflight_requests: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsembleStep {
    pub model_name: Arc<str>,
    /// `None`: the latest.
    pub model_version: Option<i64>,
    /// Inputs of the model, each with the ensemble tensor it reads.
    pub inputs: BTreeMap<Arc<str>, Arc<str>>,
    /// Outputs of the model, each with the ensemble tensor it writes.
    pub outputs: BTreeMap<Arc<str>, Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DynamicBatching {
    /// Ascending, each in 1..=max_batch_size. Empty: none was given.
    pub preferred_batch_sizes: Vec<u32>,
    pub max_queue_delay: Duration,
    pub preserves_ordering: bool,
    /// 0: one queue without priorities.
    pub priority_levels: u64,
    pub default_priority_level: u64,
    pub default_queue_policy: QueuePolicy,
    pub priority_queue_policies: BTreeMap<u64, QueuePolicy>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    pub timeout_action: TimeoutAction,
    pub default_timeout: Option<Duration>,
    pub allows_timeout_override: bool,
    /// 0: no limit.
    pub max_queue_size: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    #[default]
    Reject,
    Delay,
}

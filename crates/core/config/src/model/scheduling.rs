//! The schedulers of models: requests run alone, in batches, as sequences, or through the models of an ensemble.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::sequence::SequenceBatching;

/// The scheduler of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduling {
    /// Each request is one execution.
    Direct,
    /// Requests are joined in batches.
    Dynamic(DynamicBatching),
    /// The requests of a sequence go to one instance, which keeps their state.
    Sequence(SequenceBatching),
    /// The model is a graph of other models.
    Ensemble(Ensembling),
}

/// A graph of models. Ensemble tensors are known by name; each is an input of the ensemble or written by exactly one step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ensembling {
    /// The steps in the order of the configuration, which need not be the order of execution.
    pub steps: Vec<EnsembleStep>,
    /// The most requests of a step in flight, over all requests to the ensemble. 0 means no limit.
    pub max_inflight_requests: u32,
}

/// One model in the graph of an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnsembleStep {
    /// The model that the step calls.
    pub model_name: Arc<str>,
    /// The version; `None` for the latest.
    pub model_version: Option<i64>,
    /// Inputs of the model, each with the ensemble tensor it reads.
    pub inputs: BTreeMap<Arc<str>, Arc<str>>,
    /// Outputs of the model, each with the ensemble tensor it writes.
    pub outputs: BTreeMap<Arc<str>, Arc<str>>,
}

/// The settings that join requests in batches.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DynamicBatching {
    /// The preferred sizes, ascending, each in 1..=max_batch_size. Empty when none is given and the model has no batch dimension.
    pub preferred_batch_sizes: Vec<u32>,
    /// The longest time that a request waits for others to reach a preferred size.
    pub max_queue_delay: Duration,
    /// The server learns the delay that pays off; `max_queue_delay` is its upper bound.
    pub learns_delay: bool,
    /// Responses leave in the order of the requests.
    pub preserves_ordering: bool,
    /// The number of levels; 0 means one queue without priorities.
    pub priority_levels: u64,
    /// The level of requests that name none; 1 is served first.
    pub default_priority_level: u64,
    /// The policy of every level without one of its own.
    pub default_queue_policy: QueuePolicy,
    /// Policies by level.
    pub priority_queue_policies: BTreeMap<u64, QueuePolicy>,
}

/// The limits on waiting requests and their time in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePolicy {
    /// The treatment of a request whose time-out is over.
    pub timeout_action: TimeoutAction,
    /// The time-out of requests; `None` when they wait without limit.
    pub default_timeout: Option<Duration>,
    /// A request may give a shorter time-out of its own.
    pub allows_timeout_override: bool,
    /// The most waiting requests; 0 means no limit.
    pub max_queue_size: u32,
}

/// The treatment of a request whose time-out is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    /// It fails.
    #[default]
    Reject,
    /// It is executed after those whose time-out is not over.
    Delay,
}

//! The model, configuration and measurements that all instance threads of a model share.

use std::sync::Arc;

use galatea_backend::Model;
use galatea_config::ModelConfig;
use galatea_types::{Clock, InstanceName, PreparedRequest, Tensor};

use super::execution_pace::ExecutionPace;
use crate::{ExecutionRules, load::LoadMeter, sequence::SequenceInputs};

/// Data that all instance threads of a model share.
pub(crate) struct ModelContext {
    pub name: Arc<str>,
    pub version: i64,
    pub config: Arc<ModelConfig>,
    /// The rate limiter and thread placement of the server.
    pub execution: ExecutionRules,
    pub model: Arc<dyn Model>,
    /// True if responses may come after `execute` has returned.
    pub may_answer_later: bool,
    /// True if each request is executed alone, so that the next one can be handed over early.
    pub is_pipelined: bool,
    /// True if requests are executed together in batches.
    pub has_batching: bool,
    /// The samples that each instance executes before it gets requests.
    pub warm_up: Vec<WarmupSample>,
    /// Measures how busy the instances are.
    pub load: LoadMeter,
    /// Measures execution times; present if the thread that brings a request may execute it.
    pub pace: Option<ExecutionPace>,
    /// The inputs added to requests of sequences; present if the model has sequences.
    pub sequences: Option<SequenceInputs>,
    /// The clock of all the model's times.
    pub clock: Clock,
}

impl ModelContext {
    /// Returns the name of an instance of this model, for events.
    pub fn instance_name(&self, instance: &str) -> InstanceName {
        let (model, version) = (self.name.clone(), self.version);
        InstanceName { model, version, instance: instance.to_owned() }
    }
}

/// Requests that every instance of a model executes before it is ready, also after a restart.
#[derive(Clone, Debug)]
pub struct WarmupSample {
    /// The name in error messages.
    pub name: String,
    /// The request, with a batch size of 1. If the model has sequences, it is the first request of one.
    pub request: PreparedRequest,
    /// Inputs for the model's sequence controls, if they differ from those of the first request of a sequence.
    pub added: Vec<Tensor>,
    /// The number of such requests executed together, or one by one if the model does not batch.
    pub batch_size: u32,
    /// The number of times that this is repeated.
    pub count: u32,
}

//! What all instance threads of a model share.

use std::sync::Arc;

use galatea_backend::Model;
use galatea_config::ModelConfig;
use galatea_types::{Clock, InstanceName, PreparedRequest, Tensor};

use super::pace::ExecutionPace;
use crate::{ExecutionRules, load::LoadMeter, sequence::SequenceInputs};

/// What all instance threads of a model share.
pub(crate) struct ModelContext {
    pub name: Arc<str>,
    pub version: i64,
    pub config: Arc<ModelConfig>,
    /// Where its threads run.
    pub execution: ExecutionRules,
    pub model: Arc<dyn Model>,
    /// Responses may come after `execute` has returned.
    pub may_answer_later: bool,
    /// Each request is executed alone, so that the next one can be handed over ahead.
    pub is_pipelined: bool,
    /// Its requests are executed together.
    pub has_batching: bool,
    /// What each instance executes before it gets requests.
    pub warm_up: Vec<WarmupSample>,
    /// What all of them are at.
    pub load: LoadMeter,
    /// How long executions take, where whoever brings a request may execute it.
    pub pace: Option<ExecutionPace>,
    /// What the model is told of sequences, where it has them.
    pub sequences: Option<SequenceInputs>,
    /// Tells all its times.
    pub clock: Clock,
}

impl ModelContext {
    /// Names one of its instances in an event.
    pub fn instance_name(&self, instance: &str) -> InstanceName {
        let (model, version) = (self.name.clone(), self.version);
        InstanceName { model, version, instance: instance.to_owned() }
    }
}

/// What every instance of a model executes before it is ready, and again when it was restarted.
#[derive(Clone, Debug)]
pub struct WarmupSample {
    /// Its name in error messages.
    pub name: String,
    /// What is asked for, with a batch size of 1: the first request of a sequence where the model has them.
    pub request: PreparedRequest,
    /// What the model is told of the sequence, where it is not what it is told of the first request of one.
    pub added: Vec<Tensor>,
    /// How many such requests are executed together; one by one where the model does not batch.
    pub batch_size: u32,
    /// How often that is done.
    pub count: u32,
}

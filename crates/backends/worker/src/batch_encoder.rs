//! Encodes batches as messages to the worker.

use std::sync::Arc;

use galatea_backend::Batch;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

use crate::{
    connection::{Connection, Services},
    execution::Execution,
    inputs,
    memory::BlockAllocation,
    requests::ActiveRequest,
    wire::{OutgoingMessage, SentRequest, kind, put_request},
};

/// Writes the requests of one batch after another, with ids that are unique for the worker.
pub(crate) struct BatchEncoder {
    version: i64,
    /// Names of the model's outputs.
    outputs: Arc<[Arc<str>]>,
    /// Names of the outputs that are states of a sequence, whether clients get them or not.
    states: Arc<[Arc<str>]>,
    /// The message of the last batch. It is reused so that its memory is allocated once.
    pub message: OutgoingMessage,
    last_key: u64,
    last_execution: u64,
}

impl BatchEncoder {
    pub fn new(config: &ModelConfig, version: i64) -> Self {
        let names = |outputs: &[TensorSpec]| outputs.iter().map(|o| o.name.clone()).collect();
        let mut states: Vec<Arc<str>> = names(config.model_outputs());
        states.retain(|name| config.is_state(name));
        let outputs: Vec<Arc<str>> = names(config.outputs());
        let (outputs, states) = (outputs.into(), states.into());
        let message = OutgoingMessage::default();
        Self { version, outputs, states, message, last_key: 0, last_execution: 0 }
    }

    /// Writes the requests into the message and registers them with the connection. A request that cannot be sent is
    /// answered with the error.
    pub fn encode<S: Services>(
        &mut self,
        batch: &mut Batch,
        connection: &Connection<S>,
    ) -> Execution {
        self.last_execution += 1;
        self.message.reset(kind::EXECUTE, self.last_execution);
        let mut blocks = connection.memory.allocation();
        let mut requests = Vec::with_capacity(batch.len());
        for index in 0..batch.len() {
            let (start, first_block) = (self.message.position(), blocks.offsets.len());
            let config = connection.config.as_deref();
            match self.encode_one(config, batch, index, &mut blocks) {
                Ok((key, request)) => {
                    connection.requests.add(key, request);
                    requests.push((index, key));
                }
                Err(error) => {
                    self.message.truncate(start);
                    blocks.free_from(first_block);
                    batch.respond(index, Err(error));
                }
            }
        }
        self.message.count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
        Execution { id: self.last_execution, requests, blocks: blocks.offsets }
    }

    fn encode_one(
        &mut self,
        config: Option<&ModelConfig>,
        batch: &Batch,
        index: usize,
        blocks: &mut BlockAllocation<'_>,
    ) -> Result<(u64, ActiveRequest)> {
        let pending = batch.pending_at(index).ok_or_else(|| Error::internal("no such request"))?;
        let request = &pending.request;
        let tensors = inputs::for_model(config, request)?;
        let outputs = inputs::wanted_outputs(&self.outputs, request);
        let given = inputs::given_outputs(&outputs, &self.states);
        self.last_key += 1;
        let sent = SentRequest {
            key: self.last_key,
            model_version: self.version,
            request,
            inputs: &tensors,
            outputs: &given,
            trace: pending.context.trace_context.as_deref(),
        };
        put_request(&mut self.message, &sent, blocks)?;
        let active = ActiveRequest::new(&pending.context, outputs, self.states.clone());
        Ok((self.last_key, active))
    }
}

//! Converts a client's request for the worker, and a worker's message to a request.

use std::{sync::Arc, time::Duration};

use galatea_config::ModelConfig;
use galatea_types::{CorrelationId, Error, InferRequest, Result, Tensor};

use crate::{
    parameters, reshape,
    wire::{RequestHead, holds_strings},
};

/// Returns the request's inputs in host memory, in the shapes the model expects. Without `config` the shapes are the
/// request's.
pub(crate) fn for_model(
    config: Option<&ModelConfig>,
    request: &InferRequest,
) -> Result<Vec<Tensor>> {
    let inputs = request.inputs.iter().map(|tensor| {
        let mut tensor = tensor.on_host()?.into_owned();
        check(&tensor).map_err(|e| e.prefixed(request.message_prefix()))?;
        if let Some(config) = config
            && let Some(spec) = config.input(&tensor.name)
            && let Some(target) = &spec.reshape
        {
            tensor.shape = reshape::apply(&tensor.shape, &spec.dims, target, config.has_batching());
        }
        Ok(tensor)
    });
    inputs.collect()
}

/// Checks the byte length against the shape: the worker builds arrays over the bytes.
fn check(tensor: &Tensor) -> Result<()> {
    let (elements, data) = (tensor.shape.element_count(), tensor.host()?);
    let fits = match tensor.shape.byte_size(tensor.data_type) {
        Some(size) => size == data.len(),
        None => elements.is_some_and(|count| holds_strings(data, count)),
    };
    if fits {
        return Ok(());
    }
    Err(Error::invalid_arg(format!(
        "input '{}' has {} bytes, which is not what {} elements of {} take",
        tensor.name,
        tensor.data.len(),
        tensor.shape,
        tensor.data_type
    )))
}

/// Returns the names of the requested outputs, or of all the model's outputs when the request names none.
pub(crate) fn wanted_outputs(all: &Arc<[Arc<str>]>, request: &InferRequest) -> Arc<[Arc<str>]> {
    if request.outputs.is_empty() {
        return all.clone();
    }
    request.outputs.as_slice().into()
}

/// Returns the names of the outputs the model must return: the requested ones and the states of its sequence.
pub(crate) fn given_outputs(wanted: &Arc<[Arc<str>]>, states: &[Arc<str>]) -> Arc<[Arc<str>]> {
    if states.iter().all(|state| wanted.contains(state)) {
        return wanted.clone();
    }
    let more = states.iter().filter(|state| !wanted.contains(state));
    wanted.iter().chain(more).cloned().collect()
}

/// Builds the request that `head` describes, with `inputs` as its tensors.
///
/// # Errors
/// When its parameters have types that parameters cannot have.
pub fn received_request(head: &RequestHead<'_>, inputs: Vec<Tensor>) -> Result<InferRequest> {
    let correlation_id = match (head.correlation_id, head.correlation_text) {
        (0, "") => CorrelationId::None,
        (number, "") => CorrelationId::Number(number),
        (_, text) => CorrelationId::Text(text.to_owned()),
    };
    Ok(InferRequest {
        model_version: (head.model_version >= 0).then_some(head.model_version),
        id: head.id.to_owned(),
        inputs,
        outputs: head.outputs.iter().map(|&name| name.into()).collect(),
        parameters: parameters::read(head.parameters)?,
        correlation_id,
        sequence_start: head.flags & 1 != 0,
        sequence_end: head.flags & 2 != 0,
        priority: u64::try_from(head.priority).unwrap_or(0),
        timeout: (head.timeout_us > 0).then(|| Duration::from_micros(head.timeout_us)),
        ..InferRequest::new(head.model)
    })
}

//! A request that a worker sent or received, as the rest of the program knows requests.

use std::time::Duration;

use galatea_types::{CorrelationId, InferRequest, Result, Tensor};

use crate::{parameters, wire::RequestHead};

/// The request that `head` describes; `inputs`: its tensors.
///
/// # Errors
/// When its parameters are not what parameters can be.
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

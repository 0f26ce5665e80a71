//! From a worker's response to what a client gets.

use std::sync::Arc;

use galatea_types::{Error, Result, Tensor};

use crate::{
    link::Link,
    packing::Message,
    parameters, reshape,
    streams::Answer,
    wire::{Malformed, ResponseHead},
};

/// The answer a response holds, with only the outputs in `wanted` where those are known.
pub(crate) fn answer(
    link: &Link,
    head: &ResponseHead<'_>,
    message: &Message<'_>,
    wanted: Option<&[Arc<str>]>,
) -> Result<Answer, Malformed> {
    // All of them, also those nobody wants: taking a block and dropping it is what gives it back.
    let outputs = head.outputs.iter().map(|tensor| link.tensor(tensor, message));
    let outputs = outputs.collect::<Result<Vec<Tensor>, Malformed>>()?;
    if let Some((code, text)) = head.error {
        return Ok(Err(Error::new(code, text)));
    }
    let is_wanted = |t: &Tensor| wanted.is_none_or(|names| names.contains(&t.name));
    let outputs = outputs.into_iter().filter(is_wanted).map(|tensor| checked(link, tensor));
    let answer = outputs.collect::<Result<Vec<Tensor>>>();
    Ok(answer.and_then(|outputs| Ok((outputs, parameters::read(head.parameters)?))))
}

/// The output as the configuration wants it. As in Triton its data type and shape are the model's affair.
fn checked(link: &Link, mut tensor: Tensor) -> Result<Tensor> {
    let Some(config) = &link.config else { return Ok(tensor) };
    let spec = config.output(&tensor.name).ok_or_else(|| {
        Error::internal(format!(
            "unexpected inference output '{}' for model '{}'",
            tensor.name,
            config.name()
        ))
    })?;
    tensor.name = spec.name.clone();
    if let Some(source) = &spec.reshape {
        tensor.shape = reshape::carry(&tensor.shape, source, &spec.dims, config.has_batching());
    }
    Ok(tensor)
}

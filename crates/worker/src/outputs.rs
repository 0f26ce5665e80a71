//! From a worker's response to what a client gets.

use std::sync::Arc;

use galatea_config::ModelConfig;
use galatea_types::{Error, Result, Tensor};

use crate::{
    exception::with_traceback,
    parameters,
    requests::ResponseContent,
    reshape,
    transport::Message,
    wire::{Malformed, ResponseHead},
};

/// The content of a response, with only the outputs in `wanted` where those are known. Without `config` the
/// outputs are not checked.
pub(crate) fn read(
    config: Option<&ModelConfig>,
    head: &ResponseHead<'_>,
    message: &Message<'_>,
    wanted: Option<&[Arc<str>]>,
) -> Result<ResponseContent, Malformed> {
    // All of them, also unwanted ones: taking a block and dropping it gives it back.
    let outputs = message.tensors(&head.outputs)?;
    if let Some((code, text)) = head.error {
        return Ok(Err(with_traceback(Error::new(code, text), head.traceback)));
    }
    let is_wanted = |t: &Tensor| wanted.is_none_or(|names| names.contains(&t.name));
    let outputs = outputs.into_iter().filter(is_wanted).map(|tensor| checked(config, tensor));
    let outputs = outputs.collect::<Result<Vec<Tensor>>>();
    Ok(outputs.and_then(|outputs| Ok((outputs, parameters::read(head.parameters)?))))
}

/// The output as the configuration declares it. As in Triton the model decides on its data type and shape.
fn checked(config: Option<&ModelConfig>, mut tensor: Tensor) -> Result<Tensor> {
    let Some(config) = config else { return Ok(tensor) };
    let spec = config.output(&tensor.name).ok_or_else(|| {
        Error::internal(format!(
            "unexpected inference output '{}' for model '{}'",
            tensor.name,
            config.name()
        ))
    })?;
    tensor.name = spec.name.clone();
    if let Some(source) = &spec.reshape {
        tensor.shape = reshape::apply(&tensor.shape, source, &spec.dims, config.has_batching());
    }
    Ok(tensor)
}

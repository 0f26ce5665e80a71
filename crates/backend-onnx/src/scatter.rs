//! From the model's outputs to what is divided among the requests.

use galatea_backend::batching::Share;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, DataType, Error, Result, Shape};

use crate::{model::Port, ort::Value};

/// One output of a batch, divided among requests of these batch sizes.
pub(crate) fn share(
    config: &ModelConfig,
    port: &Port,
    value: Value,
    sizes: &[u32],
) -> Result<Share> {
    let spec = &port.spec;
    let (data_type, shape) = value.describe()?;
    let Some(data_type) = data_type.filter(|&t| t == spec.data_type) else {
        return Err(Error::internal(format!(
            "output '{}' of model '{}' has another datatype than the configured {}",
            spec.name,
            config.name(),
            spec.data_type
        )));
    };
    Share::divide(config, spec, &shape, bytes_of(value, data_type, &shape)?, sizes)
}

fn bytes_of(value: Value, data_type: DataType, shape: &Shape) -> Result<Buffer> {
    let too_large = || Error::internal(format!("an output of shape {shape} cannot be addressed"));
    if data_type == DataType::Bytes {
        let count = shape.element_count().ok_or_else(too_large)?;
        return Ok(Buffer::from(value.to_length_prefixed(count)?));
    }
    value.into_buffer(shape.byte_size(data_type).ok_or_else(too_large)?)
}

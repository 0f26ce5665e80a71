//! From the model's outputs to responses: each request gets a slice of the one buffer, nothing is copied.

use std::sync::Arc;

use galatea_backend::Batch;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, DataType, Error, Result, Shape, Tensor};

use crate::{byte_strings, model::Port, ort::Value, reshape::to_client};

/// One output of a batch, ready to be divided among the requests.
pub(crate) struct Share {
    name: Arc<str>,
    data_type: DataType,
    parts: Vec<(Shape, Buffer)>,
}

impl Share {
    pub fn new(
        config: &ModelConfig,
        port: &Port,
        value: Value,
        batch: &Batch,
        part: &[usize],
    ) -> Result<Self> {
        let name = port.spec.name.clone();
        let (data_type, shape) = value.describe()?;
        let Some(data_type) = data_type.filter(|&t| t == port.spec.data_type) else {
            return Err(Error::internal(format!(
                "output '{name}' of model '{}' has another datatype than the configured {}",
                config.name, port.spec.data_type
            )));
        };
        let data = bytes_of(value, data_type, &shape)?;
        let parts = if config.has_batching() {
            let sizes: Vec<u32> =
                part.iter().filter_map(|&i| Some(batch.request(i)?.batch_size)).collect();
            divide(port, data_type, &shape, data, &sizes)
                .ok_or_else(|| wrong_batch(config, port, &shape, &sizes))?
        } else {
            vec![(to_client(port, &shape), data)]
        };
        Ok(Self { name, data_type, parts })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the request at `position` of the batch gets.
    pub fn part(&self, position: usize) -> Result<Tensor> {
        let (shape, data) = self.parts.get(position).cloned().ok_or_else(|| {
            Error::internal(format!("output '{}' has no part {position}", self.name))
        })?;
        Ok(Tensor { name: self.name.clone(), data_type: self.data_type, shape, data })
    }
}

fn bytes_of(value: Value, data_type: DataType, shape: &Shape) -> Result<Buffer> {
    let too_large = || Error::internal(format!("an output of shape {shape} cannot be addressed"));
    if data_type == DataType::Bytes {
        let count = shape.element_count().ok_or_else(too_large)?;
        return Ok(Buffer::from(value.to_length_prefixed(count)?));
    }
    value.into_buffer(shape.byte_size(data_type).ok_or_else(too_large)?)
}

/// Cuts along the first dimension. `None` when that is not the number of items in the batch.
fn divide(
    port: &Port,
    data_type: DataType,
    shape: &Shape,
    data: Buffer,
    sizes: &[u32],
) -> Option<Vec<(Shape, Buffer)>> {
    let (&total, dims) = shape.split_first()?;
    if total != sizes.iter().map(|&n| i64::from(n)).sum::<i64>() {
        return None;
    }
    let dims = Shape::from(dims);
    let client_dims = to_client(port, &dims);
    let mut start = 0;
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let count = dims.element_count()?.checked_mul(size as usize)?;
        let length = match data_type.byte_size() {
            Some(bytes) => count.checked_mul(bytes)?,
            None => byte_strings::size_of_first(data.get(start..)?, count)?,
        };
        let end = start.checked_add(length)?;
        parts.push((client_dims.with_leading(i64::from(size)), data.slice(start..end)?));
        start = end;
    }
    Some(parts)
}

fn wrong_batch(config: &ModelConfig, port: &Port, shape: &Shape, sizes: &[u32]) -> Error {
    let total: u32 = sizes.iter().sum();
    Error::internal(format!(
        "output '{}' of model '{}' has shape {shape}, but a batch of {total} needs {total} as its first \
         dimension",
        port.spec.name, config.name
    ))
}

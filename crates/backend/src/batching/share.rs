//! From the model's outputs to answers: each request gets a slice of the one buffer, nothing is copied.

use std::sync::Arc;

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Buffer, DataType, Error, Result, Shape, Tensor, byte_strings};

use super::reshape::to_client;
use crate::Batch;

/// One output of a batch, divided among its requests.
pub struct Share {
    name: Arc<str>,
    data_type: DataType,
    parts: Vec<(Shape, Buffer)>,
}

impl Share {
    /// Divides `data`, the elements of an output of `shape` as the model gave it, along the first dimension
    /// among requests of `sizes` items each; without batching there is one request, and it gets all.
    pub fn divide(
        config: &ModelConfig,
        spec: &TensorSpec,
        shape: &Shape,
        data: Buffer,
        sizes: &[u32],
    ) -> Result<Self> {
        let parts = if config.has_batching() {
            divide(spec, shape, data, sizes)
                .ok_or_else(|| wrong_batch(config, spec, shape, sizes))?
        } else {
            vec![(to_client(spec, shape), data)]
        };
        Ok(Self { name: spec.name.clone(), data_type: spec.data_type, parts })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the request at `position` of the part gets.
    pub fn part(&self, position: usize) -> Result<Tensor> {
        let (shape, data) = self.parts.get(position).cloned().ok_or_else(|| {
            Error::internal(format!("output '{}' has no part {position}", self.name))
        })?;
        Ok(Tensor { name: self.name.clone(), data_type: self.data_type, shape, data })
    }
}

/// Hands each request of `part` its share of each output it asked for.
pub fn respond(batch: &mut Batch, part: &[usize], shares: &[Share]) {
    for (position, &index) in part.iter().enumerate() {
        let Some(request) = batch.request(index) else { continue };
        let outputs: Result<Vec<Tensor>> = shares
            .iter()
            .filter(|share| request.wants_output(share.name()))
            .map(|share| share.part(position))
            .collect();
        batch.respond(index, outputs);
    }
}

/// Gives every request of `part` this error.
pub fn fail(batch: &mut Batch, part: &[usize], error: &Error) {
    part.iter().for_each(|&index| batch.respond(index, Err(error.clone())));
}

/// Cuts along the first dimension. `None` when that is not the number of items in the batch.
fn divide(
    spec: &TensorSpec,
    shape: &Shape,
    data: Buffer,
    sizes: &[u32],
) -> Option<Vec<(Shape, Buffer)>> {
    let (&total, dims) = shape.split_first()?;
    if total != sizes.iter().map(|&n| i64::from(n)).sum::<i64>() {
        return None;
    }
    let dims = Shape::from(dims);
    let client_dims = to_client(spec, &dims);
    let mut start = 0;
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let count = dims.element_count()?.checked_mul(size as usize)?;
        let length = match spec.data_type.byte_size() {
            Some(bytes) => count.checked_mul(bytes)?,
            None => byte_strings::size_of_first(data.host().ok()?.get(start..)?, count)?,
        };
        let end = start.checked_add(length)?;
        parts.push((client_dims.with_leading(i64::from(size)), data.slice(start..end)?));
        start = end;
    }
    Some(parts)
}

fn wrong_batch(config: &ModelConfig, spec: &TensorSpec, shape: &Shape, sizes: &[u32]) -> Error {
    let total: u32 = sizes.iter().sum();
    Error::internal(format!(
        "output '{}' of model '{}' has shape {shape}, but a batch of {total} needs {total} as its first \
         dimension",
        spec.name,
        config.name()
    ))
}

#[cfg(test)]
mod tests {
    use galatea_config::testing::tensor_spec;

    use super::*;

    fn spec(data_type: DataType) -> TensorSpec {
        tensor_spec("y", data_type, [2])
    }

    #[test]
    fn each_request_gets_its_rows() {
        let data = Buffer::from((0..6).collect::<Vec<u8>>());
        let parts = divide(&spec(DataType::Uint8), &Shape::from([3, 2]), data, &[2, 1]);
        let parts = parts.expect("divides");
        assert_eq!(parts[0], (Shape::from([2, 2]), vec![0, 1, 2, 3].into()));
        assert_eq!(parts[1], (Shape::from([1, 2]), vec![4, 5].into()));
    }

    #[test]
    fn texts_are_cut_between_elements() {
        let data = byte_strings::pack(&["a", "bb", "", "dddd"]).expect("short");
        let expected =
            [data.slice(0..11), data.slice(11..data.len())].map(|b| b.expect("in range"));
        let parts = divide(&spec(DataType::Bytes), &Shape::from([2, 2]), data, &[1, 1]);
        let parts: Vec<_> = parts.expect("divides").into_iter().map(|(_, b)| b).collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn another_number_of_rows_is_refused() {
        let data = Buffer::from(vec![0; 4]);
        assert!(
            divide(&spec(DataType::Uint8), &Shape::from([2, 2]), data.clone(), &[2, 1]).is_none()
        );
        assert!(divide(&spec(DataType::Uint8), &Shape::scalar(), data, &[1]).is_none());
    }
}

//! From the model's outputs to responses: each request gets a slice of the one buffer, nothing is copied.

use std::sync::Arc;

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{AlignedBlock, Buffer, DataType, Error, Result, Shape, Tensor, byte_strings};

use super::{model_output::ModelOutput, reshape::to_client};
use crate::Batch;

/// One output of a group of requests, split along the first dimension.
pub(super) struct SplitOutput {
    name: Arc<str>,
    data_type: DataType,
    /// The next execution of each request's sequence needs it, whatever its client asks for.
    is_state: bool,
    slices: Vec<(Shape, Buffer)>,
}

impl SplitOutput {
    /// Splits an output as the model gave it along the first dimension among requests of `sizes` items each; without
    /// batching there is one request, and it gets all.
    pub fn new(
        config: &ModelConfig,
        spec: &TensorSpec,
        output: ModelOutput,
        sizes: &[u32],
    ) -> Result<Self> {
        let ModelOutput { shape, data } = output;
        let slices = if config.has_batching() {
            split(spec, &shape, data, sizes)
                .ok_or_else(|| wrong_batch(config, spec, &shape, sizes))?
        } else {
            vec![(to_client(spec, &shape), data)]
        };
        let (name, data_type) = (spec.name.clone(), spec.data_type);
        let is_state = config.is_state(&name);
        Ok(Self { name, data_type, is_state, slices })
    }

    /// What the request at `position` of the group gets.
    fn tensor(&self, position: usize) -> Result<Tensor> {
        let (shape, data) = self.slices.get(position).cloned().ok_or_else(|| {
            Error::internal(format!("output '{}' was not split for request {position}", self.name))
        })?;
        let data = match self.is_state && self.slices.len() > 1 {
            // A sequence that pauses must not keep what the others of its batch gave.
            true => copy(&data)?,
            false => data,
        };
        Ok(Tensor { name: self.name.clone(), data_type: self.data_type, shape, data })
    }
}

/// Gives each request of the group its slice of each output it asked for.
pub(super) fn respond(batch: &mut Batch, group: &[usize], outputs: &[SplitOutput]) {
    for (position, &index) in group.iter().enumerate() {
        let Some(request) = batch.request(index) else { continue };
        let tensors: Result<Vec<Tensor>> = outputs
            .iter()
            .filter(|output| output.is_state || request.wants_output(&output.name))
            .map(|output| output.tensor(position))
            .collect();
        batch.respond(index, tensors);
    }
}

fn copy(data: &Buffer) -> Result<Buffer> {
    let data = data.host()?;
    let mut block = AlignedBlock::with_capacity(data.len());
    block.extend_from_slice(data);
    Ok(block.freeze())
}

/// Cuts along the first dimension. `None` when that is not the number of items in the batch.
fn split(
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
    let mut slices = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let count = dims.element_count()?.checked_mul(size as usize)?;
        let length = match spec.data_type.byte_size() {
            Some(bytes) => count.checked_mul(bytes)?,
            None => byte_strings::size_of_first(data.host().ok()?.get(start..)?, count)?,
        };
        let end = start.checked_add(length)?;
        slices.push((client_dims.with_leading(i64::from(size)), data.slice(start..end)?));
        start = end;
    }
    Some(slices)
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
        let slices = split(&spec(DataType::Uint8), &Shape::from([3, 2]), data, &[2, 1]);
        let slices = slices.expect("splits");
        assert_eq!(slices[0], (Shape::from([2, 2]), vec![0, 1, 2, 3].into()));
        assert_eq!(slices[1], (Shape::from([1, 2]), vec![4, 5].into()));
    }

    #[test]
    fn texts_are_cut_between_elements() {
        let data = byte_strings::pack(&["a", "bb", "", "dddd"]).expect("short");
        let expected =
            [data.slice(0..11), data.slice(11..data.len())].map(|b| b.expect("in range"));
        let slices = split(&spec(DataType::Bytes), &Shape::from([2, 2]), data, &[1, 1]);
        let slices: Vec<_> = slices.expect("splits").into_iter().map(|(_, b)| b).collect();
        assert_eq!(slices, expected);
    }

    #[test]
    fn another_number_of_rows_is_refused() {
        let data = Buffer::from(vec![0; 4]);
        assert!(
            split(&spec(DataType::Uint8), &Shape::from([2, 2]), data.clone(), &[2, 1]).is_none()
        );
        assert!(split(&spec(DataType::Uint8), &Shape::scalar(), data, &[1]).is_none());
    }
}

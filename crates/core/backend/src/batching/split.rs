//! Splits the model's outputs into responses: each request gets a slice of the one buffer, without a copy.

use std::sync::Arc;

use galatea_config::{BatchOutput, BatchOutputKind, ModelConfig, TensorSpec};
use galatea_types::{Buffer, DataType, Error, Result, Shape, Tensor};

use super::{
    cut::CutPosition,
    model_output::{ModelOutput, OutputSlice},
    padding::PaddedGroup,
    reshape::to_client,
};
use crate::Batch;

/// One output of a group of requests, split along the first dimension.
pub(super) struct SplitOutput {
    name: Arc<str>,
    data_type: DataType,
    /// True if the next execution of each request's sequence needs it, even if no client wants it.
    is_state: bool,
    slices: Vec<OutputSlice>,
}

/// The rules by which outputs are divided among the requests of a group.
pub(super) struct Division<'a> {
    pub config: &'a ModelConfig,
    pub batch: &'a Batch,
    pub group: &'a [usize],
    /// The number of items of each request.
    pub sizes: Vec<u32>,
    /// The shapes that the requests were padded to.
    pub padded: Option<&'a PaddedGroup<'a>>,
}

impl Division<'_> {
    /// Splits an output of the model: by the shapes of an input if the configuration says so, else along the first dimension.
    /// Without batching, the single request gets all of it.
    pub fn split(&self, spec: &TensorSpec, output: ModelOutput) -> Result<SplitOutput> {
        let config = self.config;
        let output = match &output.data {
            // Only the host can find the ends of texts, and the padding.
            Buffer::Device(_) if spec.data_type == DataType::Bytes || self.padded.is_some() => {
                ModelOutput { data: output.data.to_host()?.into(), ..output }
            }
            _ => output,
        };
        let slices = match config.batch_output_for(&spec.name) {
            Some(rule) => self.scatter(rule, spec, &output)?,
            None if config.has_batching() => {
                let slices = split(spec, &output, &self.sizes)
                    .ok_or_else(|| wrong_batch(config, spec, &output.shape, &self.sizes))?;
                self.cut(spec, slices)?
            }
            None => {
                let shape = to_client(spec, &output.shape);
                vec![OutputSlice { shape, data: output.data }]
            }
        };
        let (name, data_type) = (spec.name.clone(), spec.data_type);
        let is_state = config.is_state(&name);
        Ok(SplitOutput { name, data_type, is_state, slices })
    }

    /// Removes the padding.
    fn cut(&self, spec: &TensorSpec, slices: Vec<OutputSlice>) -> Result<Vec<OutputSlice>> {
        let Some(padded) = self.padded else { return Ok(slices) };
        let slices = slices.into_iter().enumerate();
        slices.map(|(position, slice)| padded.cut(spec, position, slice)).collect()
    }

    /// Gives each request as many elements as its input has, if the configuration leaves a dimension of the output open.
    /// Remaining elements are dropped.
    fn scatter(
        &self,
        rule: &BatchOutput,
        spec: &TensorSpec,
        output: &ModelOutput,
    ) -> Result<Vec<OutputSlice>> {
        let BatchOutputKind::ScatterWithInputShape = rule.kind;
        let mut cut = CutPosition::of(spec.data_type, &output.data);
        let slices =
            self.group.iter().filter_map(|&index| self.batch.request(index)).map(|request| {
                let source = request.input(&rule.source).map(|tensor| &tensor.shape)?;
                let shape = scattered(self.config, spec, source)?;
                let data = cut.next(shape.element_count()?)?;
                Some(OutputSlice { shape, data })
            });
        let slices: Option<Vec<OutputSlice>> = slices.collect();
        let slices = slices.ok_or_else(|| {
            Error::internal(format!(
                "output '{}' of model '{}' has shape {}, which cannot be divided by the shapes of input '{}'",
                spec.name,
                self.config.name(),
                output.shape,
                rule.source
            ))
        })?;
        let has_batching = usize::from(self.config.has_batching());
        let seen = |OutputSlice { shape, data }: OutputSlice| {
            let (items, dims) = shape.split_at_checked(has_batching).unwrap_or_default();
            let dims = to_client(spec, &Shape::from(dims));
            let shape = items.first().map_or_else(|| dims.clone(), |&n| dims.with_leading(n));
            OutputSlice { shape, data }
        };
        Ok(slices.into_iter().map(seen).collect())
    }
}

/// Returns the shape of a request's part: open dimensions are those of its input at the same places.
fn scattered(config: &ModelConfig, spec: &TensorSpec, source: &Shape) -> Option<Shape> {
    let shape = config.shape_in_model(spec);
    let dims = shape.iter().enumerate();
    dims.map(|(at, &dim)| if dim < 0 { source.get(at).copied() } else { Some(dim) }).collect()
}

impl SplitOutput {
    /// Returns the tensor of the request at `position` of the group.
    fn tensor(&self, position: usize) -> Result<Tensor> {
        let OutputSlice { shape, data } = self.slices.get(position).cloned().ok_or_else(|| {
            Error::internal(format!("output '{}' was not split for request {position}", self.name))
        })?;
        Ok(Tensor { name: self.name.clone(), data_type: self.data_type, shape, data })
    }
}

/// Gives each request of the group its slice of each output that it wants.
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

/// Cuts along the first dimension. Returns `None` if its size is not the number of items in the batch.
fn split(spec: &TensorSpec, output: &ModelOutput, sizes: &[u32]) -> Option<Vec<OutputSlice>> {
    let (&total, dims) = output.shape.split_first()?;
    if total != sizes.iter().map(|&n| i64::from(n)).sum::<i64>() {
        return None;
    }
    let dims = Shape::from(dims);
    let client_dims = to_client(spec, &dims);
    let mut cut = CutPosition::of(spec.data_type, &output.data);
    let slice = |&size: &u32| {
        let count = dims.element_count()?.checked_mul(size as usize)?;
        let shape = client_dims.with_leading(i64::from(size));
        Some(OutputSlice { shape, data: cut.next(count)? })
    };
    sizes.iter().map(slice).collect()
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
    use galatea_types::byte_strings;

    use super::*;

    fn split(
        data_type: DataType,
        shape: impl Into<Shape>,
        data: &Buffer,
        sizes: &[u32],
    ) -> Option<Vec<OutputSlice>> {
        let output = ModelOutput { shape: shape.into(), data: data.clone() };
        super::split(&tensor_spec("y", data_type, [2]), &output, sizes)
    }

    #[test]
    fn each_request_gets_its_rows() {
        let data = Buffer::from((0..6).collect::<Vec<u8>>());
        let slices = split(DataType::Uint8, [3, 2], &data, &[2, 1]).expect("splits");
        let slice =
            |shape: [i64; 2], data: Vec<u8>| OutputSlice { shape: shape.into(), data: data.into() };
        assert_eq!(slices[0], slice([2, 2], vec![0, 1, 2, 3]));
        assert_eq!(slices[1], slice([1, 2], vec![4, 5]));
    }

    #[test]
    fn texts_are_cut_between_elements() {
        let data = byte_strings::pack(&["a", "bb", "", "dddd"]).expect("short");
        let expected =
            [data.slice(0..11), data.slice(11..data.len())].map(|b| b.expect("in range"));
        let slices = split(DataType::Bytes, [2, 2], &data, &[1, 1]).expect("splits");
        let slices: Vec<_> = slices.into_iter().map(|slice| slice.data).collect();
        assert_eq!(slices, expected);
    }

    #[test]
    fn another_number_of_rows_is_refused() {
        let data = Buffer::from(vec![0; 4]);
        assert!(split(DataType::Uint8, [2, 2], &data, &[2, 1]).is_none());
        assert!(split(DataType::Uint8, Shape::scalar(), &data, &[1]).is_none());
    }
}

//! Decides which requests of a model may share a batch.

use std::sync::Arc;

use galatea_config::{ModelConfig, Padding, TensorSpec};
use galatea_types::InferRequest;

/// Requests share a batch if they have the same inputs and equal shapes of inputs of variable shape that the
/// model does not take ragged. Shapes of padded inputs may differ by what `pad_batches` allows.
pub(crate) struct JoinRules {
    /// Inputs of variable shape that must have equal shapes within a batch.
    equal_inputs: Vec<Arc<str>>,
    /// True if some inputs are optional, so that requests may have different inputs.
    has_optional_inputs: bool,
    padded: Option<PaddedInputs>,
}

/// Inputs that are padded.
struct PaddedInputs {
    padding: Padding,
    /// Open dimensions: the input and the place in its shape.
    dimensions: Vec<(Arc<str>, usize)>,
}

/// The smallest and largest sizes of open dimensions in a batch; empty for an empty batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extent(Vec<(i64, i64)>);

impl JoinRules {
    pub fn from_config(config: &ModelConfig) -> Self {
        let padding = config.padding();
        let is_padded = |input: &TensorSpec| {
            padding.is_some_and(|padding| padding.input(&input.name).is_some())
        };
        let must_be_equal = |input: &&TensorSpec| {
            input.dims.is_variable() && !input.allows_ragged_batch && !is_padded(input)
        };
        let equal_inputs = config.inputs().iter().filter(must_be_equal);
        let is_mask = |input: &TensorSpec| {
            padding.is_some_and(|padding| padding.mask_named(&input.name).is_some())
        };
        Self {
            equal_inputs: equal_inputs.map(|input| input.name.clone()).collect(),
            has_optional_inputs: config.inputs().iter().any(|i| i.is_optional && !is_mask(i)),
            padded: padding.map(|padding| PaddedInputs::new(config, padding)),
        }
    }

    /// Returns true if some requests of the model cannot share a batch.
    pub fn keep_apart(&self) -> bool {
        self.has_optional_inputs || !self.equal_inputs.is_empty() || self.padded.is_some()
    }

    /// Returns true if two requests may share a batch.
    pub fn can_join(&self, a: &InferRequest, b: &InferRequest) -> bool {
        self.joins(a, b, &mut Extent::default())
    }

    /// Returns true if a request may join a batch with this first request and extent. The extent then includes it.
    pub fn joins(&self, first: &InferRequest, new: &InferRequest, extent: &mut Extent) -> bool {
        (!self.has_optional_inputs || self.has_same_inputs(first, new))
            && self.equal_inputs.iter().all(|name| has_equal_shape(first, new, name))
            && self.padded.as_ref().is_none_or(|padded| padded.joins(first, new, extent))
    }

    fn has_same_inputs(&self, a: &InferRequest, b: &InferRequest) -> bool {
        let is_mask = |name: &str| {
            self.padded.as_ref().is_some_and(|padded| padded.padding.mask_named(name).is_some())
        };
        let are_in = |a: &InferRequest, b: &InferRequest| {
            a.inputs.iter().all(|tensor| is_mask(&tensor.name) || b.input(&tensor.name).is_some())
        };
        are_in(a, b) && are_in(b, a)
    }
}

impl PaddedInputs {
    fn new(config: &ModelConfig, padding: &Padding) -> Self {
        let is_measured = |i: &&TensorSpec| {
            padding.input(&i.name).is_some() && padding.mask_named(&i.name).is_none()
        };
        let open = |input: &TensorSpec| {
            let name = input.name.clone();
            let open = input.dims.iter().enumerate().filter(|(_, dim)| **dim < 0);
            // The batch dimension comes first.
            open.map(|(at, _)| (name.clone(), at + 1)).collect::<Vec<_>>()
        };
        let dimensions = config.inputs().iter().filter(is_measured).flat_map(open).collect();
        Self { padding: padding.clone(), dimensions }
    }

    fn joins(&self, first: &InferRequest, new: &InferRequest, extent: &mut Extent) -> bool {
        if extent.0.is_empty() {
            extent.0 = self.sizes(first).map(|size| (size, size)).collect();
        }
        let widened =
            |(&(least, most), size): (&(i64, i64), i64)| (size.min(least), size.max(most));
        let grown = || extent.0.iter().zip(self.sizes(new)).map(widened);
        if !grown().all(|(least, most)| self.padding.admits(least, most)) {
            return false;
        }
        extent.0 = grown().collect();
        true
    }

    /// Returns the sizes of the open dimensions; -1 if the request lacks the input, which joins no other.
    fn sizes<'r>(&'r self, request: &'r InferRequest) -> impl Iterator<Item = i64> + 'r {
        self.dimensions.iter().map(|(input, at)| {
            request.input(input).and_then(|tensor| tensor.shape.get(*at).copied()).unwrap_or(-1)
        })
    }
}

/// Returns true if all dimensions except the batch dimension are equal.
fn has_equal_shape(a: &InferRequest, b: &InferRequest, name: &str) -> bool {
    match (a.input(name), b.input(name)) {
        (Some(a), Some(b)) => a.shape.get(1..) == b.shape.get(1..),
        (a, b) => a.is_none() && b.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use galatea_backend::testing::model_config;
    use galatea_types::{DataType, Tensor};

    use super::*;

    const INPUTS: &str = "backend: 'onnxruntime' max_batch_size: 8
        input { name: 'ids' data_type: TYPE_INT64 dims: -1 }
        input { name: 'mask' data_type: TYPE_INT64 dims: -1 optional: true }
        input { name: 'extra' data_type: TYPE_INT64 dims: -1 optional: true }
        output { name: 'y' data_type: TYPE_FP32 dims: 4 }";

    fn rules(parameters: &[(&str, &str)]) -> JoinRules {
        let one = |(key, value): &(&str, &str)| {
            format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}\n")
        };
        let parameters: String = parameters.iter().map(one).collect();
        JoinRules::from_config(&model_config(&format!("{INPUTS} {parameters}")))
    }

    fn request(tensors: &[(&str, i64)]) -> InferRequest {
        let tensor =
            |&(name, size): &(&str, i64)| Tensor::new(name, DataType::Int64, [1, size], Vec::new());
        let inputs = tensors.iter().map(tensor).collect();
        InferRequest { inputs, ..InferRequest::new("m") }
    }

    fn of(size: i64) -> InferRequest {
        request(&[("ids", size)])
    }

    #[test]
    fn without_padding_shapes_must_be_equal() {
        let rules = rules(&[]);
        assert!(rules.can_join(&of(4), &of(4)) && !rules.can_join(&of(4), &of(5)));
        assert!(!rules.can_join(&of(4), &request(&[("ids", 4), ("mask", 4)])));
    }

    #[test]
    fn padded_requests_join_up_to_the_padding_limit() {
        let rules = rules(&[("pad_batches", "true"), ("pad_batches.mask", "mask")]);
        assert!(rules.can_join(&of(8), &of(10)) && rules.can_join(&of(10), &of(8)));
        assert!(!rules.can_join(&of(7), &of(10)));
        assert!(rules.can_join(&of(9), &request(&[("ids", 10), ("mask", 10)])), "a mask or none");
        assert!(!rules.can_join(&of(9), &request(&[("ids", 9), ("extra", 9)])));
    }

    /// A length of 10 may join 8 or 12, but not both.
    #[test]
    fn the_padding_limit_applies_to_the_whole_batch() {
        let rules = rules(&[("pad_batches", "true")]);
        let mut extent = Extent::default();
        assert!(rules.joins(&of(10), &of(12), &mut extent));
        assert!(!rules.joins(&of(10), &of(8), &mut extent));
        assert!(rules.joins(&of(10), &of(11), &mut extent));
        assert_eq!(extent.0.first(), Some(&(10, 12)));
    }

    #[test]
    fn requests_of_one_bucket_join() {
        let rules = rules(&[("pad_batches", "true"), ("pad_batches.buckets", "16,32")]);
        assert!(rules.can_join(&of(1), &of(16)) && !rules.can_join(&of(16), &of(17)));
    }
}

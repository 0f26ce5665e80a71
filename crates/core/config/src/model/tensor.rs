//! Tensors of a model: inputs, outputs, and those that the server makes from a ragged batch or divides by it.

use std::sync::Arc;

use galatea_types::{DataType, Shape};

/// An input or output as clients see it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorSpec {
    /// The name in requests, responses and the model itself.
    pub name: Arc<str>,
    /// The type of each element.
    pub data_type: DataType,
    /// The dimensions without the batch dimension; -1 is any size.
    pub dims: Shape,
    /// The shape that the model itself needs (without the batch dimension), when it differs from `dims`.
    pub reshape: Option<Shape>,
    /// Inputs only: a request may leave it out.
    pub is_optional: bool,
    /// Inputs only: requests with different shapes may share a batch.
    pub allows_ragged_batch: bool,
    /// Outputs only: file with one class label per line, relative to the model's folder.
    pub label_filename: Option<String>,
}

impl TensorSpec {
    /// Makes a tensor with name, type and shape only.
    pub(crate) fn plain(name: Arc<str>, data_type: DataType, dims: Shape) -> Self {
        Self {
            name,
            data_type,
            dims,
            reshape: None,
            is_optional: false,
            allows_ragged_batch: false,
            label_filename: None,
        }
    }
}

/// Lists the names of tensors for a message: `'A', 'B'`. A long list is cut after the first names.
pub fn names_of(tensors: &[TensorSpec]) -> String {
    const MOST: usize = 12;
    let names: Vec<String> =
        tensors.iter().take(MOST).map(|tensor| format!("'{}'", tensor.name)).collect();
    let more = if tensors.len() > MOST { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

/// An input of the model that the server makes from the shapes of a ragged batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchInput {
    /// The content of the input.
    pub kind: BatchInputKind,
    /// Inputs of the model that receive it.
    pub targets: Vec<Arc<str>>,
    /// The data type, INT32 or FP32.
    pub data_type: DataType,
    /// The input of the requests that it describes.
    pub source: Arc<str>,
}

/// The content of a [`BatchInput`] about its source input, per request in the batch or for the whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchInputKind {
    /// The number of elements of each request.
    ElementCount,
    /// The number of elements up to the end of each request.
    AccumulatedElementCount,
    /// As [`Self::AccumulatedElementCount`], with a 0 before the first.
    AccumulatedElementCountWithZero,
    /// A tensor whose shape is the largest number of elements of a request.
    MaxElementCountAsShape,
    /// The shape of each request's input, a row for each.
    ItemShape,
    /// As [`Self::ItemShape`], in one dimension.
    ItemShapeFlatten,
}

impl BatchInput {
    /// Returns the inputs of the model that it fills, with their whole shapes. `source` is the input that it describes.
    pub(crate) fn specs<'a>(
        &'a self,
        source: Option<&TensorSpec>,
    ) -> impl Iterator<Item = TensorSpec> + 'a {
        let width = source.and_then(|source| i64::try_from(source.dims.len()).ok()).unwrap_or(-1);
        let dims = match self.kind {
            BatchInputKind::ItemShape => Shape::from([-1, width]),
            _ => Shape::from([-1]),
        };
        let spec =
            move |name: &Arc<str>| TensorSpec::plain(name.clone(), self.data_type, dims.clone());
        self.targets.iter().map(spec)
    }
}

/// Outputs of the model that are divided among the requests of a ragged batch by the shapes of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchOutput {
    /// The rule that divides them.
    pub kind: BatchOutputKind,
    /// Outputs of the model.
    pub targets: Vec<Arc<str>>,
    /// The input of the requests whose shapes divide them.
    pub source: Arc<str>,
}

/// The rule that divides a [`BatchOutput`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutputKind {
    /// Each request gets as much as its input has.
    ScatterWithInputShape,
}

//! Outputs of a model.

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Buffer, Error, Shape};

/// An output in the form that the model returned.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOutput {
    /// The shape, including the batch dimension.
    pub shape: Shape,
    /// The elements, in the form of [`Tensor::data`](galatea_types::Tensor::data).
    pub data: Buffer,
}

/// The part of an output for one request, in the shape that clients see.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OutputSlice {
    pub shape: Shape,
    pub data: Buffer,
}

/// Makes the error of an output whose type is not the configured one.
pub fn other_type(config: &ModelConfig, spec: &TensorSpec) -> Error {
    Error::internal(format!(
        "output '{}' of model '{}' has another datatype than the configured {}",
        spec.name,
        config.name(),
        spec.data_type
    ))
}

//! What a model gives.

use galatea_types::{Buffer, Shape};

/// An output as the model gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOutput {
    /// Batch dimension included.
    pub shape: Shape,
    /// The elements, in the form of [`Tensor::data`](galatea_types::Tensor::data).
    pub data: Buffer,
}

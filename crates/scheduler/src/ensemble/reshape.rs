//! `reshape` of an ensemble's own inputs and outputs: clients see one shape, the steps another over the same elements.

use galatea_backend::batching::reshape::{to_client, to_model};
use galatea_config::TensorSpec;
use galatea_types::Shape;

/// How one tensor of an ensemble is reshaped. The batch dimension stays where it is.
pub(super) struct Reshape {
    spec: TensorSpec,
    is_batched: bool,
}

impl Reshape {
    /// `None` for a tensor that clients and steps see alike.
    pub fn of(spec: &TensorSpec, is_batched: bool) -> Option<Self> {
        spec.reshape.as_ref().map(|_| Self { spec: spec.clone(), is_batched })
    }

    /// As the steps see it, from what a client sent.
    pub fn to_steps(&self, shape: &Shape) -> Shape {
        self.behind_batch(shape, |dims| to_model(&self.spec, false, dims))
    }

    /// As clients see it, from what a step made.
    pub fn to_client(&self, shape: &Shape) -> Shape {
        self.behind_batch(shape, |dims| to_client(&self.spec, dims))
    }

    fn behind_batch(&self, shape: &Shape, reshaped: impl FnOnce(&[i64]) -> Shape) -> Shape {
        match shape.split_first() {
            Some((&batch, dims)) if self.is_batched => reshaped(dims).with_leading(batch),
            _ => reshaped(shape),
        }
    }
}

//! Converts shapes of an ensemble's tensors between clients and steps, and between models with and without a batch dimension.

use galatea_backend::batching::reshape::{to_client, to_model};
use galatea_config::TensorSpec;
use galatea_types::Shape;

/// The reshape of one ensemble tensor. It leaves the batch dimension as it is.
pub(super) struct TensorReshape {
    spec: TensorSpec,
    is_batched: bool,
}

impl TensorReshape {
    /// Returns `None` for a tensor without a reshape.
    pub fn of(spec: &TensorSpec, is_batched: bool) -> Option<Self> {
        spec.reshape.as_ref().map(|_| Self { spec: spec.clone(), is_batched })
    }

    /// Converts a client's shape to the shape that the steps see.
    pub fn to_steps(&self, shape: &Shape) -> Shape {
        self.behind_batch(shape, |dims| to_model(&self.spec, false, dims))
    }

    /// Converts a step's shape to the shape that clients see.
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

/// Returns the shape of a tensor for its reader if only one of writer and reader has a batch dimension: adds a dimension
/// of 1, or removes it if the batch is 1. `dims` is the reader's configured shape without the batch dimension.
/// `batch_size` is that of the request the tensor comes from, 0 if its model does not batch.
pub(super) fn fit(shape: Shape, dims: &Shape, is_batched: bool, batch_size: u32) -> Shape {
    if is_batched == (batch_size != 0) {
        return shape;
    }
    match (is_batched, matches(dims, &shape)) {
        (true, true) => shape.with_leading(1),
        (false, false) if batch_size == 1 => Shape::from(shape.get(1..).unwrap_or_default()),
        // The shape is unchanged: either the reader wants it, or the reader refuses it.
        _ => shape,
    }
}

fn matches(dims: &[i64], shape: &[i64]) -> bool {
    dims.len() == shape.len() && dims.iter().zip(shape).all(|(&a, &b)| a == -1 || b == -1 || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_dimensions_are_added_and_removed() {
        for (shape, dims, is_batched, batch_size, expected) in [
            (&[2, 16][..], &[16][..], true, 2, &[2, 16][..]),
            (&[16], &[16], false, 0, &[16]),
            (&[16], &[-1], true, 0, &[1, 16]),
            (&[3, 16], &[16], true, 0, &[3, 16]),
            (&[1, 16], &[16], false, 1, &[16]),
            (&[4, 16], &[-1, 16], false, 4, &[4, 16]),
            (&[1, 16], &[-1, 16], false, 1, &[1, 16]),
            (&[4, 16], &[16], false, 4, &[4, 16]),
        ] {
            let fitted = fit(shape.into(), &dims.into(), is_batched, batch_size);
            assert_eq!(&*fitted, expected, "{shape:?} for {dims:?}");
        }
    }
}

//! Joins the data of consecutive steps into one request, and tells its size.

use bytes::Bytes;
use galatea_perf_types::model::{InputInfo, ModelInfo, OutputInfo};
use galatea_types::Shape;

use super::{
    dataset::{Dataset, Step, TensorData},
    error::BatchError,
};

/// Checks before the first request that steps of one request have the same inputs in the same shapes.
pub(super) fn check_batches(
    data: &Dataset,
    model: &ModelInfo,
    batch_size: usize,
) -> Result<(), BatchError> {
    for (stream, steps) in data.streams.iter().enumerate() {
        // A stream of one step repeats it.
        if steps.len() == 1 || batch_size < 2 {
            continue;
        }
        for start in 0..steps.len() {
            for (index, input) in model.inputs.iter().enumerate() {
                let tensors = data.batch(stream, start, batch_size);
                check_input(tensors.map(|step| tensor(step, index)), input)?;
            }
        }
    }
    Ok(())
}

pub(super) fn tensor(step: &Step, input: usize) -> Option<&TensorData> {
    step.inputs.get(input)?.as_ref()
}

/// Returns the bytes of an output for one element of the batch; `None`: its shape or its elements have no fixed size.
pub(super) fn known_byte_size(output: &OutputInfo) -> Option<usize> {
    Shape::from(&output.shape[..]).byte_size(output.data_type)
}

fn check_input<'a>(
    mut tensors: impl Iterator<Item = Option<&'a TensorData>>,
    input: &InputInfo,
) -> Result<(), BatchError> {
    let Some(first) = tensors.next() else { return Ok(()) };
    tensors.try_for_each(|tensor| match (first, tensor) {
        (Some(first), Some(tensor)) if input.is_shape_tensor => check_same(first, tensor),
        (Some(first), Some(tensor)) => check_shapes(first, tensor, &input.name),
        (None, None) => Ok(()),
        _ => Err(BatchError::Inputs),
    })
}

fn check_shapes(first: &TensorData, tensor: &TensorData, name: &str) -> Result<(), BatchError> {
    if first.shape == tensor.shape {
        return Ok(());
    }
    let [expected, received] =
        [first, tensor].map(|tensor| Shape::from(&tensor.shape[..]).to_string());
    Err(BatchError::Shapes { input: name.to_owned(), expected, received })
}

/// Checks a shape tensor, of which one serves the whole batch.
fn check_same(first: &TensorData, tensor: &TensorData) -> Result<(), BatchError> {
    let mismatch = match (first.data.len() == tensor.data.len(), first.data == tensor.data) {
        (true, true) => return Ok(()),
        (true, false) => "content",
        (false, _) => "size",
    };
    Err(BatchError::ShapeTensors(mismatch))
}

/// Joins the pieces. A single one is shared, not copied.
pub(super) fn join<'a>(pieces: impl Iterator<Item = &'a Bytes> + Clone) -> Bytes {
    let mut rest = pieces.clone();
    match (rest.next(), rest.next()) {
        (Some(only), None) => only.clone(),
        _ => {
            let mut joined = Vec::with_capacity(pieces.clone().map(Bytes::len).sum());
            pieces.for_each(|piece| joined.extend_from_slice(piece));
            Bytes::from(joined)
        }
    }
}

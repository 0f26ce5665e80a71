//! A body that is nothing but the data of the model's only input.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{AlignedBlock, Buffer, Shape, Tensor, byte_strings};

use super::decode_error::{DecodeError, Result};

/// Returns the tensor of such a body. Its only variable dimension follows from the size. A BYTES input has the whole
/// body as its only element.
pub(super) fn read(body: &Bytes, model: &ModelConfig) -> Result<Tensor> {
    let [spec] = model.inputs() else {
        let (inputs, model) = (model.inputs().len(), model.name().to_string());
        return Err(DecodeError::RawInputCount { inputs, model });
    };
    let mut shape = spec.dims.clone();
    let data = match spec.data_type.byte_size() {
        None if shape[..] != [1] => return Err(DecodeError::RawStringShape(spec.name.to_string())),
        None => pack(body)?,
        Some(size) => {
            if shape.iter().filter(|&&d| d < 0).count() > 1 {
                return Err(DecodeError::RawVariableDims(spec.name.to_string()));
            }
            let expected = fill_variable_dim(&mut shape, size, body.len());
            if expected != body.len() {
                let (model, found) = (model.name().to_string(), body.len());
                return Err(DecodeError::RawByteSize { model, expected, found });
            }
            Buffer::from(body.clone())
        }
    };
    let shape = if model.has_batching() { shape.with_leading(1) } else { shape };
    Ok(Tensor::new(spec.name.clone(), spec.data_type, shape, data))
}

fn pack(body: &[u8]) -> Result<Buffer> {
    let mut block = AlignedBlock::try_with_capacity(byte_strings::packed_len(body))
        .map_err(|_| DecodeError::NoMemory)?;
    byte_strings::push(&mut block, body).map_err(|_| DecodeError::StringTooLong)?;
    Ok(block.freeze())
}

/// Sets the only variable dimension, if there is one, to the size that `available` bytes allow. Returns the bytes of
/// the resulting shape.
fn fill_variable_dim(shape: &mut Shape, element_size: usize, available: usize) -> usize {
    let known = shape.iter().filter(|&&d| d >= 0).map(|&d| usize::try_from(d).unwrap_or(0));
    let unit = known.fold(element_size, usize::saturating_mul);
    let Some(variable) = shape.dims_mut().iter_mut().find(|d| **d < 0) else { return unit };
    let count = available.checked_div(unit).unwrap_or(0);
    *variable = i64::try_from(count).unwrap_or(i64::MAX);
    unit.saturating_mul(count)
}

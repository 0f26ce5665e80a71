//! A body that is nothing but the data of the model's one input.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{Buffer, Error, Result, Shape, Tensor, byte_strings};

/// The tensor of such a body: its one variable dimension follows from the size. A BYTES input takes the whole body as
/// its one element.
pub(super) fn read(body: &Bytes, model: &ModelConfig) -> Result<Tensor> {
    let refuse =
        |text: String| Err(Error::invalid_arg(format!("[request id: <id_unknown>] {text}")));
    let [spec] = model.inputs() else {
        return refuse(format!(
            "Raw request must only have 1 input (found 1) to be deduced but got {} inputs in '{}' model \
             configuration",
            model.inputs().len(),
            model.name()
        ));
    };
    let mut shape = spec.dims.clone();
    let data = match spec.data_type.byte_size() {
        None if shape[..] != [1] => {
            return refuse(format!(
                "For BYTE datatype raw input '{}', the model must have input shape [1]",
                spec.name
            ));
        }
        None => byte_strings::pack(&[&body[..]])
            .map_err(|_| Error::invalid_arg("a string is longer than 4294967295 bytes"))?,
        Some(size) => {
            if shape.iter().filter(|&&d| d < 0).count() > 1 {
                return refuse(format!(
                    "The shape of the raw input '{}' can not be deduced because there are more than one \
                     variable-sized dimension",
                    spec.name
                ));
            }
            let expected = fill_variable_dim(&mut shape, size, body.len());
            if expected != body.len() {
                return refuse(format!(
                    "input byte size mismatch for input 'raw_input' for model '{}'. Expected {expected}, \
                     got {}",
                    model.name(),
                    body.len()
                ));
            }
            Buffer::from(body.clone())
        }
    };
    let shape = if model.has_batching() { shape.with_leading(1) } else { shape };
    Ok(Tensor::new(spec.name.clone(), spec.data_type, shape, data))
}

/// Sets the one variable dimension, if there is one, to what `available` bytes allow. Returns the bytes the
/// shape then takes.
fn fill_variable_dim(shape: &mut Shape, element_size: usize, available: usize) -> usize {
    let known = shape.iter().filter(|&&d| d >= 0).map(|&d| usize::try_from(d).unwrap_or(0));
    let unit = known.fold(element_size, usize::saturating_mul);
    let Some(variable) = shape.dims_mut().iter_mut().find(|d| **d < 0) else { return unit };
    let count = available.checked_div(unit).unwrap_or(0);
    *variable = i64::try_from(count).unwrap_or(i64::MAX);
    unit.saturating_mul(count)
}

//! Compares tensors.

use galatea_types::{DataType, Tensor};
use half::{bf16, f16};

/// Returns how `got` differs, if it does.
pub(super) fn check_tensor(expected: &Tensor, got: &Tensor, tolerance: f64) -> Result<(), String> {
    let name = &expected.name;
    if (expected.data_type, &expected.shape) != (got.data_type, &got.shape) {
        return Err(format!(
            "{name} is {}{} instead of {}{}",
            got.data_type, got.shape, expected.data_type, expected.shape
        ));
    }
    if expected.data == got.data {
        return Ok(());
    }
    let (want, have) = (floats(expected), floats(got));
    // Relative above 1: other processors' kernels differ by units in the last place, which grow with the value.
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * a.abs().max(1.0);
    match want.len() == have.len() && !want.is_empty() && want.iter().zip(&have).all(is_close) {
        true => Ok(()),
        false => Err(format!("{name} holds {:?} instead of {:?}", head(got), head(expected))),
    }
}

fn head(tensor: &Tensor) -> &[u8] {
    let data = tensor.host().unwrap_or_default();
    data.get(..32).unwrap_or(data)
}

/// Returns the elements of a floating point tensor; empty for any other, which must be equal byte for byte.
fn floats(tensor: &Tensor) -> Vec<f64> {
    let data = tensor.host().unwrap_or_default();
    match tensor.data_type {
        DataType::Fp16 => {
            data.as_chunks().0.iter().map(|&c| f16::from_le_bytes(c).to_f64()).collect()
        }
        DataType::Bf16 => {
            data.as_chunks().0.iter().map(|&c| bf16::from_le_bytes(c).to_f64()).collect()
        }
        DataType::Fp32 => {
            data.as_chunks().0.iter().map(|&c| f32::from_le_bytes(c).into()).collect()
        }
        DataType::Fp64 => data.as_chunks().0.iter().map(|&c| f64::from_le_bytes(c)).collect(),
        _ => Vec::new(),
    }
}

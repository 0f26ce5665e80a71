//! Refuses numbers that do not fit the types of OpenVINO. On the CPU it computes integers of 64 bits, and UINT32, as INT32,
//! and FP64 as FP32. It reports no error for values that do not fit: INT64 2^40 becomes 0.

use galatea_config::TensorSpec;
use galatea_types::{DataType, Error, Result};

/// Refuses values of an input that OpenVINO would damage, and names the index of the first one.
///
/// # Errors
/// An invalid argument, if there is such a value.
pub(crate) fn check(spec: &TensorSpec, data: &[u8]) -> Result<()> {
    let (computed, found) = match spec.data_type {
        DataType::Int64 => ("INT32", unfit(data, |b| beyond_int32(i64::from_le_bytes(b)))),
        DataType::Uint64 => ("INT32", unfit(data, |b| u64::from_le_bytes(b) > INT32_MAX.into())),
        DataType::Uint32 => ("INT32", unfit(data, |b| u32::from_le_bytes(b) > INT32_MAX)),
        DataType::Fp64 => ("FP32", unfit(data, |b| is_beyond_fp32(f64::from_le_bytes(b)))),
        _ => return Ok(()),
    };
    match found {
        None => Ok(()),
        Some(index) => Err(Error::invalid_arg(format!(
            "element {index} of input '{}' does not fit: OpenVINO computes {} as {computed} on the CPU; send values that \
             {computed} has, or serve the model with the backend onnxruntime",
            spec.name, spec.data_type
        ))),
    }
}

const INT32_MAX: u32 = i32::MAX.unsigned_abs();

fn beyond_int32(value: i64) -> bool {
    i64::from(value as i32) != value
}

/// Returns true for values that do not fit, also for infinity: it becomes the greatest number of FP32.
fn is_beyond_fp32(value: f64) -> bool {
    value.abs() > f64::from(f32::MAX)
}

/// Returns the index of the first element that does not fit. The loop over all has no branch, so that the processor handles
/// several at once.
fn unfit<const SIZE: usize>(data: &[u8], is_unfit: impl Fn([u8; SIZE]) -> bool) -> Option<usize> {
    let (elements, _) = data.as_chunks::<SIZE>();
    let is_any = elements.iter().fold(false, |found, &element| found | is_unfit(element));
    is_any.then(|| elements.iter().position(|&element| is_unfit(element)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_of<const SIZE: usize, T: Copy>(
        values: &[T],
        bytes: fn(T) -> [u8; SIZE],
        is_unfit: fn([u8; SIZE]) -> bool,
    ) -> Option<usize> {
        let data: Vec<u8> = values.iter().flat_map(|&value| bytes(value)).collect();
        unfit(&data, is_unfit)
    }

    #[test]
    fn the_first_value_out_of_range_is_found() {
        let integers = |values: &[i64]| {
            first_of(values, i64::to_le_bytes, |b| beyond_int32(i64::from_le_bytes(b)))
        };
        assert_eq!(integers(&[0, -1, i64::from(i32::MAX), i64::from(i32::MIN)]), None);
        assert_eq!(integers(&[0, 1 << 31, 1 << 40]), Some(1));
        assert_eq!(integers(&[i64::from(i32::MIN) - 1]), Some(0));
        let numbers = |values: &[f64]| {
            first_of(values, f64::to_le_bytes, |b| is_beyond_fp32(f64::from_le_bytes(b)))
        };
        assert_eq!(numbers(&[0.1, f64::NAN, 1e-300, f64::from(f32::MAX)]), None);
        assert_eq!(numbers(&[1.0, f64::NEG_INFINITY]), Some(1));
        assert_eq!(numbers(&[1e300]), Some(0));
    }
}

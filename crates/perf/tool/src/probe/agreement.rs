//! Compares the answers of two servers to the same requests.

use galatea_client::OutputTensor;
use galatea_types::DataType;
use half::{bf16, f16};

/// The outputs of some requests, in the order of the requests.
#[derive(Debug, Default)]
pub struct Answers(pub(super) Vec<Vec<OutputTensor>>);

/// The largest difference of two servers' answers.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerDifference {
    /// For numbers with fractions: the largest difference, as a share of the largest number of the tensor. For other elements:
    /// the share of those that differ.
    pub share: f64,
    /// The output with the largest difference.
    pub output: String,
}

impl Answers {
    /// Returns the largest difference between `other` and these.
    ///
    /// # Errors
    /// If answers cannot be compared: other outputs, types or shapes.
    pub fn difference(&self, other: &Self) -> Result<AnswerDifference, String> {
        let mut largest = AnswerDifference { share: 0.0, output: String::new() };
        for (these, those) in self.0.iter().zip(&other.0) {
            for this in these {
                let share = tensor_difference(this, those)?;
                if share > largest.share || largest.output.is_empty() {
                    largest = AnswerDifference { share, output: this.name.clone() };
                }
            }
        }
        Ok(largest)
    }
}

fn tensor_difference(this: &OutputTensor, those: &[OutputTensor]) -> Result<f64, String> {
    let name = &this.name;
    let other = those.iter().find(|other| other.name == *name);
    let other = other.ok_or_else(|| format!("there is no output '{name}'"))?;
    if (this.data_type, &this.shape) != (other.data_type, &other.shape) {
        let what = |tensor: &OutputTensor| format!("{} {:?}", tensor.data_type, tensor.shape);
        return Err(format!("output '{name}' is {} and not {}", what(other), what(this)));
    }
    Ok(match (numbers(this), numbers(other)) {
        (Some(these), Some(those)) => largest_difference(&these, &those),
        _ => share_of_others(this, other),
    })
}

/// Returns the numbers of a type with fractions; `None`: the type has none.
fn numbers(tensor: &OutputTensor) -> Option<Vec<f64>> {
    let data = &tensor.data;
    Some(match tensor.data_type {
        DataType::Fp16 => read(data, |bytes| f16::from_le_bytes(bytes).to_f64()),
        DataType::Bf16 => read(data, |bytes| bf16::from_le_bytes(bytes).to_f64()),
        DataType::Fp32 => read(data, |bytes| f64::from(f32::from_le_bytes(bytes))),
        DataType::Fp64 => read(data, f64::from_le_bytes),
        _ => return None,
    })
}

fn read<const N: usize>(data: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    data.chunks_exact(N).filter_map(<[u8]>::first_chunk::<N>).map(|bytes| number(*bytes)).collect()
}

fn largest_difference(these: &[f64], those: &[f64]) -> f64 {
    let scale = these.iter().filter(|n| n.is_finite()).fold(0.0_f64, |most, n| most.max(n.abs()));
    let apart = |(this, that): (&f64, &f64)| match (this - that).abs() {
        // Both are the same infinity, or both are NaN.
        _ if this == that || (this.is_nan() && that.is_nan()) => 0.0,
        apart if apart.is_nan() => f64::INFINITY,
        apart => apart,
    };
    let largest = these.iter().zip(those).map(apart).fold(0.0, f64::max);
    if largest == 0.0 { 0.0 } else { largest / scale.max(f64::MIN_POSITIVE) }
}

/// Returns the share of differing elements of other types; strings count as one element, as their lengths vary.
fn share_of_others(this: &OutputTensor, other: &OutputTensor) -> f64 {
    let Some(size) = this.data_type.byte_size() else {
        return if this.data == other.data { 0.0 } else { 1.0 };
    };
    let pairs = this.data.chunks(size).zip(other.data.chunks(size));
    let (all, others) = pairs.fold((0_u32, 0_u32), |(all, others), (a, b)| {
        (all.saturating_add(1), others.saturating_add(u32::from(a != b)))
    });
    f64::from(others) / f64::from(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(numbers: &[f32]) -> OutputTensor {
        let data: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        OutputTensor {
            name: "y".to_owned(),
            data_type: DataType::Fp32,
            shape: vec![numbers.len() as i64],
            data: data.into(),
        }
    }

    fn difference(this: OutputTensor, other: OutputTensor) -> Result<AnswerDifference, String> {
        Answers(vec![vec![this]]).difference(&Answers(vec![vec![other]]))
    }

    fn share(this: &[f32], other: &[f32]) -> f64 {
        difference(floats(this), floats(other)).expect("comparable").share
    }

    #[test]
    fn floats_may_differ_by_a_share_of_the_largest() {
        assert_eq!(share(&[1.0, -4.0], &[1.0, -4.0]), 0.0);
        assert_eq!(share(&[1.0, -4.0], &[2.0, -4.0]), 0.25);
        assert_eq!(share(&[0.0], &[0.0]), 0.0);
        assert!(share(&[0.0], &[1.0]) > 1.0);
        assert_eq!(share(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]), 0.0);
        assert_eq!(share(&[1.0, 2.0], &[f32::NAN, 2.0]), f64::INFINITY);
        assert_eq!(share(&[1.0, 2.0], &[f32::INFINITY, 2.0]), f64::INFINITY);
    }

    #[test]
    fn other_elements_must_be_equal() {
        let tensor = |data: &'static [u8], data_type| OutputTensor {
            name: "y".to_owned(),
            data_type,
            shape: vec![4],
            data: data.into(),
        };
        let of =
            |a, b, kind| difference(tensor(a, kind), tensor(b, kind)).expect("comparable").share;
        assert_eq!(of(b"abcd", b"abce", DataType::Int8), 0.25);
        assert_eq!(of(b"abcd", b"abcd", DataType::Int8), 0.0);
        assert_eq!(of(b"abcd", b"abc", DataType::Bytes), 1.0);
    }

    #[test]
    fn outputs_that_cannot_be_compared_are_named() {
        let told = difference(floats(&[1.0]), floats(&[1.0, 2.0])).expect_err("shapes");
        assert_eq!(told, "output 'y' is FP32 [2] and not FP32 [1]");
        let mut other = floats(&[1.0]);
        other.name = "z".to_owned();
        assert_eq!(difference(floats(&[1.0]), other).expect_err("names"), "there is no output 'y'");
    }
}

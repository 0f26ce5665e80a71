//! Numbers that every data type holds exactly.

use galatea_types::{Buffer, DataType, Shape, Tensor, byte_strings};
use half::{bf16, f16};

/// Whole numbers that every data type holds exactly, as well as their sums and differences.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Row-major.
    pub values: Vec<i16>,
    /// A shape with as many elements as there are values.
    pub shape: Shape,
}

impl Sample {
    /// Returns the values as a tensor of this type.
    pub fn tensor(&self, name: &str, data_type: DataType) -> Tensor {
        Tensor::new(name, data_type, self.shape.clone(), encode(data_type, &self.values))
    }

    /// Combines two samples element by element; their shapes must be equal.
    pub fn combine(&self, other: &Sample, op: impl Fn(i16, i16) -> i16) -> Sample {
        let values = self.values.iter().zip(&other.values).map(|(&a, &b)| op(a, b)).collect();
        Sample { values, shape: self.shape.clone() }
    }
}

/// Returns values from `from` to `from + 19`, different for each `seed`.
pub fn sample(shape: impl Into<Shape>, from: i16, seed: usize) -> Sample {
    let shape = shape.into();
    let count = shape.element_count().unwrap_or(0);
    let step = seed % 7 + 1;
    let offset = |i: usize| i16::try_from((i * step + seed) % 20).unwrap_or(0);
    Sample { values: (0..count).map(|i| from + offset(i)).collect(), shape }
}

/// Returns the values as the bytes of a tensor. `BYTES` holds decimal text, `BOOL` is true for odd values.
pub fn encode(data_type: DataType, values: &[i16]) -> Buffer {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for &value in values {
        encode_one(data_type, value, &mut bytes);
    }
    bytes.into()
}

fn encode_one(data_type: DataType, value: i16, bytes: &mut Vec<u8>) {
    let wide = i64::from(value).to_le_bytes();
    match data_type {
        DataType::Bool => bytes.push(u8::from(value % 2 != 0)),
        DataType::Fp16 => bytes.extend(f16::from_f32(value.into()).to_le_bytes()),
        DataType::Bf16 => bytes.extend(bf16::from_f32(value.into()).to_le_bytes()),
        DataType::Fp32 => bytes.extend(f32::from(value).to_le_bytes()),
        DataType::Fp64 => bytes.extend(f64::from(value).to_le_bytes()),
        DataType::Bytes => {
            // A few digits are never too long.
            let _ = byte_strings::push(bytes, value.to_string().as_bytes());
        }
        // Two's complement, little-endian: the first bytes are the narrow integer.
        integer => bytes.extend(wide.into_iter().take(integer.byte_size().unwrap_or(0))),
    }
}

//! Sums and differences of tensors.

use std::{
    num::ParseIntError,
    ops::{Add, Sub},
};

use galatea_backend::OutputBuffer;
use galatea_types::{DataType, Error, Result, byte_strings};
use half::{bf16, f16};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Add,
    Subtract,
}

pub(crate) fn is_supported(data_type: DataType) -> bool {
    data_type != DataType::Bool
}

/// Computes element by element on two tensors of the same type and size. `buffer` gives memory for the result.
pub(crate) fn apply(
    op: Operation,
    data_type: DataType,
    a: &[u8],
    b: &[u8],
    buffer: impl FnOnce(usize) -> Result<OutputBuffer>,
) -> Result<OutputBuffer> {
    if data_type == DataType::Bytes {
        let elements = decimal_texts(op, a, b)?;
        let mut result = buffer(elements.len())?;
        result.as_mut_slice().copy_from_slice(&elements);
        return Ok(result);
    }
    let mut result = buffer(a.len())?;
    apply_fixed(op, data_type, a, b, result.as_mut_slice())?;
    Ok(result)
}

/// Computes on elements of a fixed size. `result` has the size of the operands.
fn apply_fixed(
    op: Operation,
    data_type: DataType,
    a: &[u8],
    b: &[u8],
    result: &mut [u8],
) -> Result<()> {
    macro_rules! elements {
        ($t:ty, $add:expr, $subtract:expr) => {
            zip(a, b, result, |a, b| {
                let (a, b) = (<$t>::from_le_bytes(a), <$t>::from_le_bytes(b));
                match op {
                    Operation::Add => $add(a, b),
                    Operation::Subtract => $subtract(a, b),
                }
                .to_le_bytes()
            })
        };
    }
    macro_rules! integers {
        ($t:ty) => {
            elements!($t, <$t>::wrapping_add, <$t>::wrapping_sub)
        };
    }
    macro_rules! floats {
        ($t:ty) => {
            elements!($t, Add::add, Sub::sub)
        };
    }
    match data_type {
        DataType::Uint8 => integers!(u8),
        DataType::Uint16 => integers!(u16),
        DataType::Uint32 => integers!(u32),
        DataType::Uint64 => integers!(u64),
        DataType::Int8 => integers!(i8),
        DataType::Int16 => integers!(i16),
        DataType::Int32 => integers!(i32),
        DataType::Int64 => integers!(i64),
        DataType::Fp16 => floats!(f16),
        DataType::Bf16 => floats!(bf16),
        DataType::Fp32 => floats!(f32),
        DataType::Fp64 => floats!(f64),
        DataType::Bytes | DataType::Bool => {
            return Err(Error::unsupported(format!("{data_type} values cannot be added")));
        }
    }
    Ok(())
}

fn zip<const N: usize>(
    a: &[u8],
    b: &[u8],
    result: &mut [u8],
    f: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let (a, b) = (a.as_chunks().0, b.as_chunks().0);
    for ((&a, &b), result) in a.iter().zip(b).zip(result.as_chunks_mut().0) {
        *result = f(a, b);
    }
}

fn decimal_texts(op: Operation, a: &[u8], b: &[u8]) -> Result<Vec<u8>> {
    let number = |text: Result<&[u8], byte_strings::Truncated>| {
        whole_number(
            text.map_err(|_| Error::invalid_arg("BYTES elements do not fill their tensor"))?,
        )
    };
    let mut data = Vec::with_capacity(a.len());
    for (a, b) in byte_strings::elements(a).zip(byte_strings::elements(b)) {
        let (a, b) = (number(a)?, number(b)?);
        let result = match op {
            Operation::Add => a.wrapping_add(b),
            Operation::Subtract => a.wrapping_sub(b),
        };
        byte_strings::push(&mut data, result.to_string().as_bytes())
            .map_err(|e| Error::internal(e.to_string()))?;
    }
    Ok(data)
}

fn whole_number(text: &[u8]) -> Result<i64> {
    let text = String::from_utf8_lossy(text);
    text.parse().map_err(|e: ParseIntError| {
        Error::invalid_arg(format!("'{text}' is not a whole number: {e}")).with_source(e)
    })
}

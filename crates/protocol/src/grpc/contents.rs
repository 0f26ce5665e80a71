//! Typed tensor contents into the form that every tensor has. Types that have no field of their own (FP16, BF16) come
//! raw only.

use galatea_proto::inference::InferTensorContents;
use galatea_types::{AlignedBlock, Buffer, DataType, byte_strings};

use super::decode_error::{DecodeError, Result};

/// Which input the contents belong to, for the messages.
pub(super) struct DeclaredInput<'a> {
    pub input: &'a str,
    pub model: &'a str,
    /// As the request gives it; `None` when it is no data type at all.
    pub data_type: Option<DataType>,
}

impl DeclaredInput<'_> {
    fn check(&self, field: DataType) -> Result<()> {
        if self.data_type == Some(field) {
            return Ok(());
        }
        let (input, model) = (self.input.to_owned(), self.model.to_owned());
        Err(DecodeError::ContentsType { input, model, field, declared: self.data_type })
    }
}

/// The data in the one field that is filled; no bytes when none is.
pub(super) fn read(contents: &InferTensorContents, declared: &DeclaredInput<'_>) -> Result<Buffer> {
    let mut data = None;
    for field in fields(contents) {
        if field.is_empty() {
            continue;
        }
        if data.is_some() {
            let (input, model) = (declared.input.to_owned(), declared.model.to_owned());
            return Err(DecodeError::TwoContents { input, model });
        }
        data = Some(field.read(declared)?);
    }
    Ok(data.unwrap_or_default())
}

enum Field<'a> {
    Bool(&'a [bool]),
    Int(&'a [i32]),
    Int64(&'a [i64]),
    Uint(&'a [u32]),
    Uint64(&'a [u64]),
    Fp32(&'a [f32]),
    Fp64(&'a [f64]),
    Bytes(&'a [bytes::Bytes]),
}

/// In the order in which they are looked at, which decides what a client reads when several are filled.
fn fields(contents: &InferTensorContents) -> [Field<'_>; 8] {
    [
        Field::Bool(&contents.bool_contents),
        Field::Int(&contents.int_contents),
        Field::Int64(&contents.int64_contents),
        Field::Uint(&contents.uint_contents),
        Field::Uint64(&contents.uint64_contents),
        Field::Fp32(&contents.fp32_contents),
        Field::Fp64(&contents.fp64_contents),
        Field::Bytes(&contents.bytes_contents),
    ]
}

impl Field<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Field::Bool(v) => v.is_empty(),
            Field::Int(v) => v.is_empty(),
            Field::Int64(v) => v.is_empty(),
            Field::Uint(v) => v.is_empty(),
            Field::Uint64(v) => v.is_empty(),
            Field::Fp32(v) => v.is_empty(),
            Field::Fp64(v) => v.is_empty(),
            Field::Bytes(v) => v.is_empty(),
        }
    }

    /// Types narrower than their field keep the low bytes, as in Triton.
    fn read(&self, declared: &DeclaredInput<'_>) -> Result<Buffer> {
        declared.check(self.data_type(declared.data_type))?;
        let buffer = match (self, declared.data_type) {
            (Field::Bool(v), _) => fixed(v, |b| [u8::from(b)]),
            (Field::Int(v), Some(DataType::Int8)) => fixed(v, |n| [n.to_le_bytes()[0]]),
            (Field::Int(v), Some(DataType::Int16)) => fixed(v, |n| low_half(n.to_le_bytes())),
            (Field::Int(v), _) => fixed(v, i32::to_le_bytes),
            (Field::Int64(v), _) => fixed(v, i64::to_le_bytes),
            (Field::Uint(v), Some(DataType::Uint8)) => fixed(v, |n| [n.to_le_bytes()[0]]),
            (Field::Uint(v), Some(DataType::Uint16)) => fixed(v, |n| low_half(n.to_le_bytes())),
            (Field::Uint(v), _) => fixed(v, u32::to_le_bytes),
            (Field::Uint64(v), _) => fixed(v, u64::to_le_bytes),
            (Field::Fp32(v), _) => fixed(v, f32::to_le_bytes),
            (Field::Fp64(v), _) => fixed(v, f64::to_le_bytes),
            (Field::Bytes(v), _) => {
                byte_strings::pack(v).map_err(|_| DecodeError::ElementTooLong)?
            }
        };
        Ok(buffer)
    }

    /// What this field holds, given the data type of the request.
    fn data_type(&self, asked: Option<DataType>) -> DataType {
        match (self, asked) {
            (Field::Bool(_), _) => DataType::Bool,
            (Field::Int(_), Some(t @ (DataType::Int8 | DataType::Int16))) => t,
            (Field::Int(_), _) => DataType::Int32,
            (Field::Int64(_), _) => DataType::Int64,
            (Field::Uint(_), Some(t @ (DataType::Uint8 | DataType::Uint16))) => t,
            (Field::Uint(_), _) => DataType::Uint32,
            (Field::Uint64(_), _) => DataType::Uint64,
            (Field::Fp32(_), _) => DataType::Fp32,
            (Field::Fp64(_), _) => DataType::Fp64,
            (Field::Bytes(_), _) => DataType::Bytes,
        }
    }
}

fn low_half([a, b, _, _]: [u8; 4]) -> [u8; 2] {
    [a, b]
}

fn fixed<T: Copy, const N: usize>(values: &[T], bytes_of: impl Fn(T) -> [u8; N]) -> Buffer {
    let byte_size = values.len().saturating_mul(N);
    let mut block = AlignedBlock::with_capacity(byte_size);
    block.extend_zeroed(byte_size);
    let (chunks, _) = block.as_mut_slice().as_chunks_mut::<N>();
    for (chunk, &value) in chunks.iter_mut().zip(values) {
        *chunk = bytes_of(value);
    }
    block.freeze()
}

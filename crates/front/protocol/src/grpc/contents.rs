//! Converts typed tensor contents into the bytes of tensors. Types without a field of their own (FP16, BF16) are only
//! sent raw.

use galatea_config::ModelConfig;
use galatea_types::{AlignedBlock, Buffer, DataType, byte_strings};

use super::{
    decode_error::{DecodeError, Result},
    fields::{Fields, MalformedMessage, Parsed, Value, for_each_varint, packed_varints, values},
};
use crate::input_description::taken_as;

/// The input of the contents, for error messages.
pub(super) struct DeclaredInput<'a> {
    pub input: &'a str,
    pub model: &'a ModelConfig,
    /// The data type in the request; `None` if that is not a data type.
    pub data_type: Option<DataType>,
}

impl DeclaredInput<'_> {
    fn names(&self) -> (String, String) {
        (self.input.to_owned(), self.model.name().to_string())
    }

    fn check(&self, field: DataType) -> Result<()> {
        if self.data_type == Some(field) {
            return Ok(());
        }
        let taken = taken_as(Some(self.input), self.model);
        let (input, model) = self.names();
        Err(DecodeError::ContentsType { input, model, field, declared: self.data_type, taken })
    }
}

/// The fields, in the order in which they are checked. The order decides the error when several are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Bool,
    Int,
    Int64,
    Uint,
    Uint64,
    Fp32,
    Fp64,
    Bytes,
}

const FIELDS: [Field; 8] = [
    Field::Bool,
    Field::Int,
    Field::Int64,
    Field::Uint,
    Field::Uint64,
    Field::Fp32,
    Field::Fp64,
    Field::Bytes,
];

/// The number of elements in each field of the contents, and the bytes of the strings among them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContentsFields {
    counts: [usize; FIELDS.len()],
    string_bytes: usize,
}

impl ContentsFields {
    pub fn add(&mut self, message: &[u8]) -> Parsed<()> {
        for field in Fields::of(message) {
            let (number, value) = field?;
            let Some((field, count)) = FIELDS
                .into_iter()
                .zip(&mut self.counts)
                .find(|(field, _)| field.number() == number)
            else {
                continue;
            };
            *count += field.elements_in(value)?;
            if let (Field::Bytes, Value::Bytes(string)) = (field, value) {
                self.string_bytes += string.len();
            }
        }
        Ok(())
    }

    fn filled(&self) -> impl Iterator<Item = (Field, usize)> {
        FIELDS.into_iter().zip(self.counts).filter(|&(_, count)| count > 0)
    }

    /// Returns the bytes of the elements as a tensor of `data_type`.
    pub fn byte_size(&self, data_type: Option<DataType>) -> usize {
        self.filled().map(|(field, count)| self.size_of(field, count, data_type)).sum()
    }

    fn size_of(&self, field: Field, count: usize, data_type: Option<DataType>) -> usize {
        match field.data_type(data_type).byte_size() {
            Some(size) => count.saturating_mul(size),
            None => count.saturating_mul(byte_strings::packed_len(&[])) + self.string_bytes,
        }
    }
}

/// Returns the data of the only filled field; no bytes if none is. `parts` are the messages that make up the contents.
pub(super) fn read<'a>(
    parts: impl Iterator<Item = Parsed<&'a [u8]>> + Clone,
    contents: &ContentsFields,
    declared: &DeclaredInput<'_>,
) -> Result<Buffer> {
    let mut data = None;
    for (field, count) in contents.filled() {
        if data.is_some() {
            let (input, model) = declared.names();
            return Err(DecodeError::TwoContents { input, model });
        }
        declared.check(field.data_type(declared.data_type))?;
        let size = contents.size_of(field, count, declared.data_type);
        let mut block = AlignedBlock::with_capacity(size);
        field.fill(&mut block, size, parts.clone(), declared.data_type)?;
        data = Some(block.freeze());
    }
    Ok(data.unwrap_or_default())
}

impl Field {
    fn number(self) -> u32 {
        self as u32 + 1
    }

    fn elements_in(self, value: Value<'_>) -> Parsed<usize> {
        match (self, value) {
            (Self::Bytes, Value::Bytes(_))
            | (Self::Fp32, Value::Fixed32(_))
            | (Self::Fp64, Value::Fixed64(_)) => Ok(1),
            (Self::Bytes, _) => Err(MalformedMessage),
            (Self::Fp32, value) => whole(value.bytes()?, size_of::<f32>()),
            (Self::Fp64, value) => whole(value.bytes()?, size_of::<f64>()),
            (_, Value::Varint(_)) => Ok(1),
            (_, packed) => packed_varints(packed.bytes()?),
        }
    }

    /// Returns the data type of this field's elements, given the data type in the request.
    fn data_type(self, asked: Option<DataType>) -> DataType {
        match (self, asked) {
            (Self::Bool, _) => DataType::Bool,
            (Self::Int, Some(t @ (DataType::Int8 | DataType::Int16))) => t,
            (Self::Int, _) => DataType::Int32,
            (Self::Int64, _) => DataType::Int64,
            (Self::Uint, Some(t @ (DataType::Uint8 | DataType::Uint16))) => t,
            (Self::Uint, _) => DataType::Uint32,
            (Self::Uint64, _) => DataType::Uint64,
            (Self::Fp32, _) => DataType::Fp32,
            (Self::Fp64, _) => DataType::Fp64,
            (Self::Bytes, _) => DataType::Bytes,
        }
    }

    /// Types narrower than their field keep the low bytes, as in Triton.
    fn fill<'a>(
        self,
        block: &mut AlignedBlock,
        size: usize,
        parts: impl Iterator<Item = Parsed<&'a [u8]>>,
        data_type: Option<DataType>,
    ) -> Result<()> {
        let values = elements(parts, self.number());
        match (self, self.data_type(data_type).byte_size()) {
            (Self::Bytes, _) => fill_strings(block, values),
            (Self::Fp32 | Self::Fp64, _) => fill_fixed(block, values),
            (Self::Bool, _) => fill_varints(block, size, values, |n| [u8::from(n != 0)]),
            (_, Some(1)) => fill_varints(block, size, values, |n| [n.to_le_bytes()[0]]),
            (_, Some(2)) => fill_varints(block, size, values, low::<2>),
            (_, Some(4)) => fill_varints(block, size, values, low::<4>),
            _ => fill_varints(block, size, values, u64::to_le_bytes),
        }
    }
}

fn low<const N: usize>(number: u64) -> [u8; N] {
    number.to_le_bytes().first_chunk().copied().unwrap_or([0; N])
}

/// Returns the number of elements of `size` bytes each in a packed field.
fn whole(packed: &[u8], size: usize) -> Parsed<usize> {
    if packed.len().is_multiple_of(size) { Ok(packed.len() / size) } else { Err(MalformedMessage) }
}

/// Returns the values of a field of the contents, in all their parts.
fn elements<'a>(
    parts: impl Iterator<Item = Parsed<&'a [u8]>>,
    number: u32,
) -> impl Iterator<Item = Parsed<Value<'a>>> {
    parts.flat_map(move |part| match part {
        Ok(message) => values(message, number),
        // This cannot happen, because the message was checked. An empty message has no values.
        Err(_) => values(&[], number),
    })
}

fn fill_strings<'a>(
    block: &mut AlignedBlock,
    values: impl Iterator<Item = Parsed<Value<'a>>>,
) -> Result<()> {
    for value in values {
        byte_strings::push(block, value?.bytes()?).map_err(|_| DecodeError::ElementTooLong)?;
    }
    Ok(())
}

fn fill_fixed<'a>(
    block: &mut AlignedBlock,
    values: impl Iterator<Item = Parsed<Value<'a>>>,
) -> Result<()> {
    for value in values {
        match value? {
            Value::Fixed32(number) => block.extend_from_slice(&number),
            Value::Fixed64(number) => block.extend_from_slice(&number),
            packed => block.extend_from_slice(packed.bytes()?),
        }
    }
    Ok(())
}

fn fill_varints<'a, const N: usize>(
    block: &mut AlignedBlock,
    size: usize,
    values: impl Iterator<Item = Parsed<Value<'a>>>,
    bytes_of: impl Fn(u64) -> [u8; N],
) -> Result<()> {
    block.extend_zeroed(size);
    let (places, _) = block.as_mut_slice().as_chunks_mut::<N>();
    let mut places = places.iter_mut();
    for value in values {
        match value? {
            Value::Varint(number) => put(&mut places, bytes_of(number)),
            packed => {
                for_each_varint(packed.bytes()?, |number| put(&mut places, bytes_of(number)))?;
            }
        }
    }
    Ok(())
}

/// Puts an element in its place. There is one for each, because they were counted.
fn put<'a, const N: usize>(places: &mut impl Iterator<Item = &'a mut [u8; N]>, bytes: [u8; N]) {
    if let Some(place) = places.next() {
        *place = bytes;
    }
}

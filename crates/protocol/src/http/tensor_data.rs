//! The `data` array of an input, straight into the tensor's buffer.

use std::collections::TryReserveError;

use galatea_types::{AlignedBlock, Buffer, DataType, byte_strings};

use super::{
    decode_error::{DecodeError, Result},
    json::{Cursor, Kind, check_depth},
    json_error::JsonError,
};

/// What becomes of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elements {
    /// They are the data of the tensor.
    Kept,
    /// They are checked and forgotten: no model takes the tensor.
    Checked,
}

/// Which data is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'n> {
    pub data_type: DataType,
    /// Of elements.
    pub count: usize,
    pub input_name: &'n str,
    pub elements: Elements,
}

/// Reads the array, nested in any way, the cursor stands on: integers within the range of their type, floating point
/// numbers to the nearest value, BYTES as strings.
///
/// BYTES data may have any number of elements here: the check against the model knows how many it takes.
///
/// Memory is taken for as many elements as the text that is left can hold, whatever the shape says.
pub(crate) fn decode(cursor: &mut Cursor<'_>, expected: Expected<'_>) -> Result<Buffer> {
    cursor.expect_array().map_err(|error| in_data(error.into()))?;
    decode_any(cursor, expected)
}

/// [`decode`], which also takes a single value that is in no array.
pub(crate) fn decode_any(cursor: &mut Cursor<'_>, expected: Expected<'_>) -> Result<Buffer> {
    let Expected { data_type, count, input_name, elements } = expected;
    let mut reader = Reader { cursor, count, elements };
    match data_type {
        DataType::Bool => reader.fixed(|r| Ok([u8::from(r.cursor.expect_bool()?)])),
        DataType::Uint8 => reader.fixed(|r| r.unsigned::<u8>().map(u8::to_le_bytes)),
        DataType::Uint16 => reader.fixed(|r| r.unsigned::<u16>().map(u16::to_le_bytes)),
        DataType::Uint32 => reader.fixed(|r| r.unsigned::<u32>().map(u32::to_le_bytes)),
        DataType::Uint64 => reader.fixed(|r| r.unsigned::<u64>().map(u64::to_le_bytes)),
        DataType::Int8 => reader.fixed(|r| r.signed::<i8>().map(i8::to_le_bytes)),
        DataType::Int16 => reader.fixed(|r| r.signed::<i16>().map(i16::to_le_bytes)),
        DataType::Int32 => reader.fixed(|r| r.signed::<i32>().map(i32::to_le_bytes)),
        DataType::Int64 => reader.fixed(|r| r.signed::<i64>().map(i64::to_le_bytes)),
        DataType::Fp32 => reader.fixed(|r| Ok((r.cursor.expect_f64()? as f32).to_le_bytes())),
        DataType::Fp64 => reader.fixed(|r| Ok(r.cursor.expect_f64()?.to_le_bytes())),
        DataType::Bytes => {
            return reader
                .strings()
                .map_err(|e| DecodeError::BytesArray(Box::new(e.of(data_type))));
        }
        DataType::Fp16 | DataType::Bf16 => {
            return Err(DecodeError::NoJsonForm { data_type, input: input_name.to_owned() });
        }
    }
    .map_err(|error| in_data(error.of(data_type)))
}

fn in_data(error: DecodeError) -> DecodeError {
    error.in_field("data")
}

/// What is wrong with the elements. Small, because every element has a result.
#[derive(Clone, Copy, Debug)]
enum ElementError {
    Json(JsonError),
    OutOfRange,
    CountMismatch,
    StringTooLong,
    NoMemory,
}

impl ElementError {
    /// As the error of a tensor of `data_type`.
    fn of(self, data_type: DataType) -> DecodeError {
        match self {
            Self::Json(error) => error.into(),
            Self::OutOfRange => DecodeError::ValueOutOfRange { data_type },
            Self::CountMismatch => DecodeError::CountMismatch,
            Self::StringTooLong => DecodeError::StringTooLong,
            Self::NoMemory => DecodeError::NoMemory,
        }
    }
}

impl From<JsonError> for ElementError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl From<TryReserveError> for ElementError {
    fn from(_: TryReserveError) -> Self {
        Self::NoMemory
    }
}

struct Reader<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    count: usize,
    elements: Elements,
}

impl Reader<'_, '_> {
    fn fixed<const N: usize>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<[u8; N], ElementError>,
    ) -> Result<Buffer, ElementError> {
        // An element takes two bytes of text at least, so a huge shape cannot claim memory it has no data for.
        let capacity = self.count.min(self.cursor.text_left() / 2 + 1).saturating_mul(N);
        let is_kept = self.elements == Elements::Kept;
        let mut block = AlignedBlock::try_with_capacity(if is_kept { capacity } else { 0 })?;
        let mut missing = self.count;
        let mut next = || {
            missing = missing.checked_sub(1).ok_or(ElementError::CountMismatch)?;
            Ok::<(), ElementError>(())
        };
        if is_kept {
            self.read(&mut |reader| {
                next()?;
                block.extend_from_slice(&element(reader)?);
                Ok(())
            })?;
        } else {
            self.read(&mut |reader| {
                next()?;
                element(reader).map(drop)
            })?;
        }
        if missing > 0 {
            return Err(ElementError::CountMismatch);
        }
        Ok(block.freeze())
    }

    fn strings(&mut self) -> Result<Buffer, ElementError> {
        if self.elements == Elements::Checked {
            self.read(&mut |reader| Ok(reader.cursor.expect_string().map(drop)?))?;
            return Ok(Buffer::default());
        }
        // Short strings are the usual ones; the rest grows. Packed, three bytes of text, `"",`, take four at most.
        let most = self.cursor.text_left() / 3 * 4 + 4;
        let guess = self.count.saturating_mul(16).min(most);
        let mut block = AlignedBlock::try_with_capacity(guess)?;
        self.read(&mut |reader| {
            let text = reader.cursor.expect_string()?;
            block.try_reserve(byte_strings::packed_len(&text))?;
            byte_strings::push(&mut block, &text).map_err(|_| ElementError::StringTooLong)
        })?;
        block.shrink_if_sparse();
        Ok(block.freeze())
    }

    fn read(
        &mut self,
        element: &mut impl FnMut(&mut Self) -> Result<(), ElementError>,
    ) -> Result<(), ElementError> {
        if self.cursor.kind() == Kind::Array { self.walk(1, element) } else { element(self) }
    }

    fn walk(
        &mut self,
        depth: usize,
        element: &mut impl FnMut(&mut Self) -> Result<(), ElementError>,
    ) -> Result<(), ElementError> {
        check_depth(depth)?;
        self.cursor.open();
        let mut is_first = true;
        while self.cursor.next_element(&mut is_first)? {
            if self.cursor.kind() == Kind::Array {
                self.walk(depth + 1, element)?;
            } else {
                element(self)?;
            }
        }
        Ok(())
    }

    /// Triton silently keeps the low bits of a value out of range; a wrong number is worse than an error.
    fn unsigned<T: TryFrom<u64>>(&mut self) -> Result<T, ElementError> {
        let value = self.cursor.expect_u64()?;
        T::try_from(value).map_err(|_| ElementError::OutOfRange)
    }

    fn signed<T: TryFrom<i64>>(&mut self) -> Result<T, ElementError> {
        let value = self.cursor.expect_i64()?;
        T::try_from(value).map_err(|_| ElementError::OutOfRange)
    }
}

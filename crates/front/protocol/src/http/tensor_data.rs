//! Decodes the `data` array of an input straight into the tensor's buffer.

use std::collections::TryReserveError;

use galatea_types::{AlignedBlock, Buffer, DataType, byte_strings};

use super::{
    decode_error::{DecodeError, Result},
    element::{Element, ElementError},
    json::{JsonCursor, Kind, check_depth, whitespace},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elements {
    /// The elements are kept as the data of the tensor.
    Kept,
    /// The elements are checked and dropped, because no model accepts the tensor.
    Checked,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedData<'n> {
    pub data_type: DataType,
    /// The number of elements.
    pub count: usize,
    pub input_name: &'n str,
    pub elements: Elements,
}

/// Reads the array at the cursor, nested in any way. Integers must be in the range of their type, floating point
/// numbers are rounded to the nearest value, and BYTES are strings.
///
/// BYTES data may have any number of elements here, because the later check against the model knows the right number.
///
/// Memory is allocated only for elements that the rest of the text can hold, whatever the shape says.
pub(crate) fn decode(cursor: &mut JsonCursor<'_>, expected: ExpectedData<'_>) -> Result<Buffer> {
    cursor.expect_array().map_err(|error| in_data(error.into()))?;
    decode_any(cursor, expected)
}

/// Like [`decode`], but also accepts a single value outside an array.
pub(crate) fn decode_any(
    cursor: &mut JsonCursor<'_>,
    expected: ExpectedData<'_>,
) -> Result<Buffer> {
    let ExpectedData { data_type, count, input_name, elements } = expected;
    let mut reader = Reader { cursor, count, elements };
    match data_type {
        DataType::Bool => reader.fixed::<bool, _>(),
        DataType::Uint8 => reader.fixed::<u8, _>(),
        DataType::Uint16 => reader.fixed::<u16, _>(),
        DataType::Uint32 => reader.fixed::<u32, _>(),
        DataType::Uint64 => reader.fixed::<u64, _>(),
        DataType::Int8 => reader.fixed::<i8, _>(),
        DataType::Int16 => reader.fixed::<i16, _>(),
        DataType::Int32 => reader.fixed::<i32, _>(),
        DataType::Int64 => reader.fixed::<i64, _>(),
        DataType::Fp32 => reader.fixed::<f32, _>(),
        DataType::Fp64 => reader.fixed::<f64, _>(),
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

#[derive(Clone, Copy, Debug)]
enum DataError {
    Element(ElementError),
    CountMismatch,
    StringTooLong,
    NoMemory,
}

impl DataError {
    /// Returns the error of a tensor of `data_type`.
    fn of(self, data_type: DataType) -> DecodeError {
        match self {
            Self::Element(ElementError::Json(error)) => error.into(),
            Self::Element(ElementError::OutOfRange) => DecodeError::ValueOutOfRange { data_type },
            Self::CountMismatch => DecodeError::CountMismatch,
            Self::StringTooLong => DecodeError::StringTooLong,
            Self::NoMemory => DecodeError::NoMemory,
        }
    }
}

impl<E: Into<ElementError>> From<E> for DataError {
    fn from(error: E) -> Self {
        Self::Element(error.into())
    }
}

/// The error when the elements need more memory than there is.
fn no_memory(_: TryReserveError) -> DataError {
    DataError::NoMemory
}

/// The elements that are read before they are put into the tensor.
const AT_ONCE: usize = 64;

struct Reader<'c, 'a> {
    cursor: &'c mut JsonCursor<'a>,
    count: usize,
    elements: Elements,
}

impl Reader<'_, '_> {
    fn fixed<T: Element<N>, const N: usize>(&mut self) -> Result<Buffer, DataError> {
        // An element takes at least two bytes of text, so a huge shape cannot claim memory without data for it.
        let capacity = self.count.min(self.cursor.text_left() / 2 + 1).saturating_mul(N);
        let is_kept = self.elements == Elements::Kept;
        let mut block = AlignedBlock::try_with_capacity(if is_kept { capacity } else { 0 })
            .map_err(no_memory)?;
        let mut missing = self.count;
        let mut chunk = [[0; N]; AT_ONCE];
        self.read(&mut |reader| {
            let (room, _) = chunk.split_at_mut(missing.min(AT_ONCE));
            let mut count = plain_elements::<T, N>(reader.cursor, room);
            if count == 0 {
                let place = room.first_mut().ok_or(DataError::CountMismatch)?;
                *place = T::read(reader.cursor)?.bytes();
                count = 1;
            }
            missing -= count;
            if is_kept && let Some(read) = chunk.get(..count) {
                block.extend_from_slice(read.as_flattened());
            }
            Ok(())
        })?;
        if missing > 0 {
            return Err(DataError::CountMismatch);
        }
        Ok(block.freeze())
    }

    fn strings(&mut self) -> Result<Buffer, DataError> {
        if self.elements == Elements::Checked {
            self.read(&mut |reader| Ok(reader.cursor.expect_string().map(drop)?))?;
            return Ok(Buffer::default());
        }
        // Most strings are short, and the block grows for longer ones. Three bytes of text, `"",`, take at most four when packed.
        let most = self.cursor.text_left() / 3 * 4 + 4;
        let guess = self.count.saturating_mul(16).min(most);
        let mut block = AlignedBlock::try_with_capacity(guess).map_err(no_memory)?;
        self.read(&mut |reader| {
            let text = reader.cursor.expect_string()?;
            block.try_reserve(byte_strings::packed_len(&text)).map_err(no_memory)?;
            byte_strings::push(&mut block, &text).map_err(|_| DataError::StringTooLong)
        })?;
        block.shrink_if_sparse();
        Ok(block.freeze())
    }

    fn read(
        &mut self,
        element: &mut impl FnMut(&mut Self) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        if self.cursor.kind() == Kind::Array { self.walk(1, element) } else { element(self) }
    }

    fn walk(
        &mut self,
        depth: usize,
        element: &mut impl FnMut(&mut Self) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
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
}

/// Reads elements in the usual form, separated by commas, and leaves the cursor after the last one. Returns their
/// number, at most the length of `places`.
fn plain_elements<T: Element<N>, const N: usize>(
    cursor: &mut JsonCursor<'_>,
    places: &mut [[u8; N]],
) -> usize {
    let text = cursor.rest();
    let (mut count, mut end, mut start) = (0, 0, 0);
    for place in places {
        let window = text.get(start..).and_then(|rest| rest.first_chunk());
        let Some((element, length)) = window.and_then(|window| T::plain(window)) else { break };
        *place = element.bytes();
        count += 1;
        end = start + length;
        let comma = end + whitespace(text, end);
        if text.get(comma) != Some(&b',') {
            break;
        }
        start = comma + 1 + whitespace(text, comma + 1);
    }
    cursor.advance(end);
    count
}

//! A tensor as a message describes it.

use galatea_types::{DataType, Shape, byte_strings};

use crate::wire::read::{ProtocolError, Reader, size};

/// The place of a tensor's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorPlace {
    /// The message's data, from this offset.
    Inline(usize),
    /// A block of the sender's arena.
    Arena(u64),
}

/// A tensor as a message describes it; its bytes are elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorHead<'a> {
    /// Name of the input or output.
    pub name: &'a str,
    /// Data type of its elements.
    pub data_type: DataType,
    /// All dimensions, the batch dimension included.
    pub shape: Shape,
    /// Place of its bytes.
    pub place: TensorPlace,
    /// Number of its bytes.
    pub byte_length: usize,
}

impl<'a> TensorHead<'a> {
    /// Reads the description from the front of `reader`. A length that does not fit the shape is an error.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ProtocolError> {
        let name_length = usize::from(reader.u16()?);
        let data_type = data_type_from_number(reader.u8()?)?;
        let place = reader.u8()?;
        let rank = size(reader.u32()?)?;
        let offset = reader.u64()?;
        let byte_length = size(reader.u64()?)?;
        let place = match place {
            0 => TensorPlace::Inline(size(offset)?),
            1 => TensorPlace::Arena(offset),
            _ => return Err(ProtocolError("a tensor is in no known place")),
        };
        let dims =
            reader.bytes(rank.checked_mul(8).ok_or(ProtocolError("a rank is too great"))?)?;
        let shape: Shape = dims.as_chunks().0.iter().map(|&d| i64::from_le_bytes(d)).collect();
        let head = Self { name: reader.text(name_length)?, data_type, shape, place, byte_length };
        head.check()?;
        Ok(head)
    }

    /// Checks the length against the shape. The elements of a BYTES tensor are checked when its bytes are read.
    fn check(&self) -> Result<(), ProtocolError> {
        let elements = self.shape.element_count().ok_or(ProtocolError("a shape is not one"))?;
        match self.data_type.byte_size() {
            None => Ok(()),
            Some(width) if elements.checked_mul(width) == Some(self.byte_length) => Ok(()),
            Some(_) => Err(ProtocolError("a tensor's length does not fit its shape")),
        }
    }
}

/// Returns true if `data` holds exactly `count` elements of a BYTES tensor.
pub fn holds_strings(data: &[u8], count: usize) -> bool {
    byte_strings::size_of_first(data, count) == Some(data.len())
}

/// Returns the data type of a number. The protocol numbers them from 1 in the order of [`DataType::ALL`].
fn data_type_from_number(number: u8) -> Result<DataType, ProtocolError> {
    let index = usize::from(number).checked_sub(1);
    let data_type = index.and_then(|i| DataType::ALL.get(i));
    data_type.copied().ok_or(ProtocolError("a data type is unknown"))
}

pub(super) fn data_type_number(data_type: DataType) -> u8 {
    let index = DataType::ALL.iter().position(|&t| t == data_type).unwrap_or(0);
    u8::try_from(index + 1).unwrap_or(0)
}

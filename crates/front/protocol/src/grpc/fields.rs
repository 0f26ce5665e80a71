//! Reads the fields of a Protobuf message in one piece, without building the message.

use prost::{
    DecodeError as Malformed,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

/// The result of reading bytes that may not be a message of the expected kind.
pub(super) type Parsed<T> = Result<T, MalformedMessage>;

/// The error for bytes that are not a message. Where prost reads them, prost reports the exact fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a message of this kind")]
pub(super) struct MalformedMessage;

impl From<Malformed> for MalformedMessage {
    fn from(_: Malformed) -> Self {
        Self
    }
}

impl From<std::str::Utf8Error> for MalformedMessage {
    fn from(_: std::str::Utf8Error) -> Self {
        Self
    }
}

/// The value of a field on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    /// A group: two marks around other fields. No known field has this form.
    Group,
}

impl<'a> Value<'a> {
    pub fn varint(self) -> Parsed<u64> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(MalformedMessage),
        }
    }

    pub fn fixed64(self) -> Parsed<[u8; 8]> {
        match self {
            Self::Fixed64(value) => Ok(value),
            _ => Err(MalformedMessage),
        }
    }

    /// Returns the bytes, which may be a nested message.
    pub fn bytes(self) -> Parsed<&'a [u8]> {
        match self {
            Self::Bytes(value) => Ok(value),
            _ => Err(MalformedMessage),
        }
    }

    pub fn text(self) -> Parsed<&'a str> {
        Ok(std::str::from_utf8(self.bytes()?)?)
    }
}

/// The fields of a message in their order: numbers and values.
///
/// After an error, further fields or errors have no meaning.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub fn left(&self) -> usize {
        self.rest.len()
    }

    fn read(&mut self) -> Parsed<(u32, Value<'a>)> {
        let (number, wire_type) = decode_key(&mut self.rest)?;
        let value = match wire_type {
            WireType::Varint => Value::Varint(decode_varint(&mut self.rest)?),
            WireType::ThirtyTwoBit => Value::Fixed32(self.fixed()?),
            WireType::SixtyFourBit => Value::Fixed64(self.fixed()?),
            WireType::LengthDelimited => Value::Bytes(self.delimited()?),
            WireType::StartGroup | WireType::EndGroup => {
                skip_field(wire_type, number, &mut self.rest, DecodeContext::default())?;
                Value::Group
            }
        };
        Ok((number, value))
    }

    fn fixed<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (value, rest) = self.rest.split_first_chunk().ok_or(MalformedMessage)?;
        self.rest = rest;
        Ok(*value)
    }

    fn delimited(&mut self) -> Parsed<&'a [u8]> {
        let length =
            usize::try_from(decode_varint(&mut self.rest)?).map_err(|_| MalformedMessage)?;
        let (value, rest) = self.rest.split_at_checked(length).ok_or(MalformedMessage)?;
        self.rest = rest;
        Ok(value)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Parsed<(u32, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.read())
    }
}

pub(super) fn values<'a>(
    message: &'a [u8],
    number: u32,
) -> impl Iterator<Item = Parsed<Value<'a>>> + Clone + use<'a> {
    Fields::of(message).filter_map(move |field| match field {
        Ok((found, value)) => (found == number).then_some(Ok(value)),
        Err(error) => Some(Err(error)),
    })
}

/// The bytes of the longest number.
const LONGEST: usize = 10;

/// Returns how many numbers a packed field has. Each ends with a byte whose highest bit is not set.
pub(super) fn packed_varints(packed: &[u8]) -> Parsed<usize> {
    let (mut count, mut length) = (0, 0);
    for &byte in packed {
        length += 1;
        // The last byte of the longest number has the highest of 64 bits.
        if length >= LONGEST && byte > 1 {
            return Err(MalformedMessage);
        }
        if byte < 0x80 {
            count += 1;
            length = 0;
        }
    }
    if length == 0 { Ok(count) } else { Err(MalformedMessage) }
}

/// Calls `take` for each number of a packed field. The numbers were counted before.
pub(super) fn for_each_varint(mut packed: &[u8], mut take: impl FnMut(u64)) -> Parsed<()> {
    while let [first, rest @ ..] = packed {
        if *first < 0x80 {
            take(u64::from(*first));
            packed = rest;
        } else {
            take(decode_varint(&mut packed)?);
        }
    }
    Ok(())
}

//! Reads the elements of a tensor straight into the bytes that are sent.

use galatea_types::{DataType, byte_strings};
use half::{bf16, f16};
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{error::TensorError, non_finite_numbers};

/// Reads elements in row-major order. Lists within the list are allowed and change nothing.
///
/// Whole numbers must be in range. Floats may be written as whole numbers.
pub(super) fn read_elements(list: &RawValue, data_type: DataType) -> Result<Vec<u8>, TensorError> {
    let mut bytes = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(list.get());
    match (Elements { data_type, bytes: &mut bytes }).deserialize(&mut deserializer) {
        Ok(()) => Ok(bytes),
        Err(error) if error.is_data() => Err(TensorError::WrongType(data_type)),
        Err(error) => {
            // Its line and column would be those within the list.
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or_default();
            Err(TensorError::Syntax(reason.to_owned()))
        }
    }
}

struct Elements<'a> {
    data_type: DataType,
    bytes: &'a mut Vec<u8>,
}

impl Elements<'_> {
    fn integer<E: Error>(self, value: i128) -> Result<(), E> {
        let bits = match self.data_type {
            DataType::Uint8 | DataType::Int8 => 8,
            DataType::Uint16 | DataType::Int16 => 16,
            DataType::Uint32 | DataType::Int32 => 32,
            DataType::Uint64 | DataType::Int64 => 64,
            _ => return self.float(value as f64),
        };
        let range = match self.data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                -(1 << (bits - 1))..1 << (bits - 1)
            }
            _ => 0..1 << bits,
        };
        if !range.contains(&value) {
            return Err(Error::custom("out of range"));
        }
        self.bytes.extend(value.to_le_bytes().into_iter().take(bits / 8));
        Ok(())
    }

    fn float<E: Error>(self, value: f64) -> Result<(), E> {
        match self.data_type {
            DataType::Fp16 => self.bytes.extend(f16::from_f64(value).to_le_bytes()),
            DataType::Bf16 => self.bytes.extend(bf16::from_f64(value).to_le_bytes()),
            DataType::Fp32 => self.bytes.extend((value as f32).to_le_bytes()),
            DataType::Fp64 => self.bytes.extend(value.to_le_bytes()),
            _ => return Err(Error::custom("not a number of this kind")),
        }
        Ok(())
    }

    fn is_integer(&self) -> bool {
        use DataType::*;
        matches!(self.data_type, Uint8 | Uint16 | Uint32 | Uint64 | Int8 | Int16 | Int32 | Int64)
    }
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} elements", self.data_type)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Elements { data_type, bytes } = self;
        while list.next_element_seed(Elements { data_type, bytes: &mut *bytes })?.is_some() {}
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.integer(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.integer(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        // JSON's -0 arrives as a float.
        if value == 0.0 && self.is_integer() { self.integer(0) } else { self.float(value) }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if self.data_type != DataType::Bool {
            return Err(Error::custom("a bool"));
        }
        self.bytes.push(value.into());
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        if self.data_type == DataType::Bytes {
            return byte_strings::push(self.bytes, value.as_bytes())
                .map_err(|_| Error::custom("too long"));
        }
        self.float(non_finite_numbers::value(value).ok_or_else(|| E::custom("a string"))?)
    }
}

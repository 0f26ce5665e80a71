//! The fields of a tensor in a request message, read in place.

use galatea_types::{DataType, Shape};

use super::{
    contents::ContentsFields,
    fields::{Fields, Parsed, Value, for_each_varint, packed_varints, values},
    parameters::{ParameterMap, entry},
};

mod number {
    pub const NAME: u32 = 1;
    pub const DATATYPE: u32 = 2;
    pub const SHAPE: u32 = 3;
    pub const PARAMETERS: u32 = 4;
    pub const CONTENTS: u32 = 5;

    pub const OUTPUT_NAME: u32 = 1;
    pub const OUTPUT_PARAMETERS: u32 = 2;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InputFields<'a> {
    message: &'a [u8],
    pub name: &'a str,
    pub datatype: &'a str,
    pub rank: usize,
    pub parameter_count: usize,
    pub contents: Option<ContentsFields>,
}

impl<'a> InputFields<'a> {
    /// Finds and checks the fields without allocating memory.
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut found =
            Self { message, name: "", datatype: "", rank: 0, parameter_count: 0, contents: None };
        for field in Fields::of(message) {
            let (number, value) = field?;
            match number {
                number::NAME => found.name = value.text()?,
                number::DATATYPE => found.datatype = value.text()?,
                number::SHAPE => found.rank += dimension_count(value)?,
                number::PARAMETERS => {
                    entry(value.bytes()?)?;
                    found.parameter_count += 1;
                }
                number::CONTENTS => {
                    found.contents.get_or_insert_default().add(value.bytes()?)?;
                }
                _ => {}
            }
        }
        Ok(found)
    }

    pub fn data_type(&self) -> Option<DataType> {
        DataType::from_protocol_name(self.datatype)
    }

    pub fn shape(&self) -> Parsed<Shape> {
        let mut shape = Shape::scalar();
        for value in values(self.message, number::SHAPE) {
            match value? {
                Value::Varint(dimension) => shape.push(dimension.cast_signed()),
                packed => for_each_varint(packed.bytes()?, |n| shape.push(n.cast_signed()))?,
            }
        }
        Ok(shape)
    }

    pub fn parameters(&self) -> Parsed<ParameterMap<'a>> {
        map(self.message, number::PARAMETERS, self.parameter_count)
    }

    /// Returns the messages that together make up the contents.
    pub fn contents_parts(&self) -> impl Iterator<Item = Parsed<&'a [u8]>> + Clone + use<'a> {
        values(self.message, number::CONTENTS).map(|value| value?.bytes())
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OutputFields<'a> {
    message: &'a [u8],
    pub name: &'a str,
    pub parameter_count: usize,
}

impl<'a> OutputFields<'a> {
    /// Finds and checks the fields without allocating memory.
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut found = Self { message, name: "", parameter_count: 0 };
        for field in Fields::of(message) {
            let (number, value) = field?;
            match number {
                number::OUTPUT_NAME => found.name = value.text()?,
                number::OUTPUT_PARAMETERS => {
                    entry(value.bytes()?)?;
                    found.parameter_count += 1;
                }
                _ => {}
            }
        }
        Ok(found)
    }

    pub fn parameters(&self) -> Parsed<ParameterMap<'a>> {
        map(self.message, number::OUTPUT_PARAMETERS, self.parameter_count)
    }
}

fn dimension_count(value: Value<'_>) -> Parsed<usize> {
    match value {
        Value::Varint(_) => Ok(1),
        packed => packed_varints(packed.bytes()?),
    }
}

fn map(message: &[u8], number: u32, count: usize) -> Parsed<ParameterMap<'_>> {
    if count == 0 {
        return Ok(ParameterMap::default());
    }
    let entries = values(message, number).map(|value| entry(value?.bytes()?));
    Ok(ParameterMap::of(entries.collect::<Parsed<Vec<_>>>()?))
}

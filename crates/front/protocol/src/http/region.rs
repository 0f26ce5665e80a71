//! The parameters that place a tensor in a shared memory region.

use std::borrow::Cow;

use galatea_types::{RegionSpan, Regions};

use super::{
    decode_error::{DecodeError, Result},
    field::Member,
    json::{self, JsonCursor},
    limits,
};

const REGION: &str = "shared_memory_region";
const OFFSET: &str = "shared_memory_offset";
const BYTE_SIZE: &str = "shared_memory_byte_size";

#[derive(Debug, Default)]
pub(super) struct RegionParameters<'a> {
    name: Member<Cow<'a, [u8]>>,
    offset: Member<u64>,
    byte_size: Member<u64>,
}

impl<'a> RegionParameters<'a> {
    /// Moves past the value of the parameter `key`, and keeps it if it is one of these.
    pub fn read(&mut self, key: &[u8], cursor: &mut JsonCursor<'a>) -> json::Result<()> {
        match key {
            _ if key == REGION.as_bytes() => self.name.read(cursor, JsonCursor::expect_string),
            _ if key == OFFSET.as_bytes() => self.offset.read(cursor, JsonCursor::expect_u64),
            _ if key == BYTE_SIZE.as_bytes() => self.byte_size.read(cursor, JsonCursor::expect_u64),
            _ => cursor.skip_value(),
        }
    }

    pub fn name_region(&self) -> bool {
        self.name.is_there()
    }

    /// Returns the span of the named region, if there is one. A missing offset or size is 0.
    pub fn span(
        self,
        cursor: &JsonCursor<'a>,
        regions: &dyn Regions,
    ) -> Result<Option<RegionSpan>> {
        let name = self.name.take_field(cursor, REGION, JsonCursor::expect_string)?;
        let Some(name) = name else { return Ok(None) };
        let region = regions.find(&limits::name(&name))?;
        let number = |member: Member<u64>, field| {
            Ok::<_, DecodeError>(
                member.take_field(cursor, field, JsonCursor::expect_u64)?.unwrap_or(0),
            )
        };
        let (offset, byte_size) =
            (number(self.offset, OFFSET)?, number(self.byte_size, BYTE_SIZE)?);
        Ok(Some(RegionSpan::new(region, offset, byte_size)?))
    }
}

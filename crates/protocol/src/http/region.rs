//! The parameters that put a tensor into shared memory.

use galatea_types::RegionSpan;

use super::{decode_error::Result, field::read_at, json::Cursor, limits};
use crate::regions::Regions;

const REGION: &str = "shared_memory_region";
const OFFSET: &str = "shared_memory_offset";
const BYTE_SIZE: &str = "shared_memory_byte_size";

/// Where in the text the values of these parameters start.
#[derive(Debug, Default)]
pub(super) struct RegionParameters {
    name: Option<usize>,
    offset: Option<usize>,
    byte_size: Option<usize>,
}

impl RegionParameters {
    /// Remembers the parameter `key`, whose value starts at `at`, if it is one of these. Of two the first counts.
    pub fn note(&mut self, key: &[u8], at: usize) {
        let slot = match key {
            _ if key == REGION.as_bytes() => &mut self.name,
            _ if key == OFFSET.as_bytes() => &mut self.offset,
            _ if key == BYTE_SIZE.as_bytes() => &mut self.byte_size,
            _ => return,
        };
        slot.get_or_insert(at);
    }

    /// Whether they name a region.
    pub fn name_region(&self) -> bool {
        self.name.is_some()
    }

    /// The span of the region they name, if they name one. Offset and size are 0 where they are left out.
    pub fn span(&self, cursor: &Cursor<'_>, regions: &dyn Regions) -> Result<Option<RegionSpan>> {
        let Some(at) = self.name else { return Ok(None) };
        let name = read_at(cursor, at, REGION, Cursor::expect_string)?;
        let region = regions.find(&limits::name(&name))?;
        let number = |at: Option<usize>, field| {
            at.map_or(Ok(0), |at| read_at(cursor, at, field, Cursor::expect_u64))
        };
        let (offset, byte_size) =
            (number(self.offset, OFFSET)?, number(self.byte_size, BYTE_SIZE)?);
        Ok(Some(RegionSpan { region, offset, byte_size }))
    }
}

//! Parts that regions of every memory have in common: their bounds, and the server's copies of their bytes.

use std::sync::Arc;

use galatea_types::{AlignedBlock, Buffer, Code, Error, MemoryBudget, Result};

/// The bounds of a registered region, as its client gave them.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'r> {
    /// The name of the region.
    pub name: &'r str,
    /// Number of bytes.
    pub byte_size: u64,
}

impl Bounds<'_> {
    /// Checks that the `byte_size` bytes from `offset` on are part of the region.
    pub fn check(self, offset: u64, byte_size: u64) -> Result<()> {
        let Self { name, byte_size: size } = self;
        let text = if offset >= size {
            format!("Invalid offset for shared memory region: '{name}'")
        } else if offset.checked_add(byte_size).is_none() {
            format!(
                "Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value ({}) for \
                 region '{name}'",
                u64::MAX
            )
        } else if offset + byte_size > size {
            format!("Invalid offset + byte size for shared memory region: '{name}'")
        } else {
            return Ok(());
        };
        Err(Error::invalid_arg(text))
    }

    /// Returns a block of `byte_size` bytes that counts to `memory`. `fill` appends as many to it.
    pub fn copy(
        self,
        memory: &Arc<MemoryBudget>,
        byte_size: u64,
        fill: impl FnOnce(&mut AlignedBlock, usize) -> Result<()>,
    ) -> Result<Buffer> {
        let no_room = || {
            let name = self.name;
            let text = format!("the server has no memory to read shared memory region '{name}'");
            Error::new(Code::Exhausted, text)
        };
        let size = usize::try_from(byte_size).map_err(|_| no_room())?;
        let mut reservation = memory.reservation();
        reservation.try_grow(size)?;
        let mut block = AlignedBlock::try_with_capacity(size).map_err(|_| no_room())?;
        fill(&mut block, size)?;
        Ok(reservation.attach(block.into_bytes()).into())
    }
}

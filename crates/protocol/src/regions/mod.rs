//! Shared memory that a client registered under a name, as the translation sees it: where the data of an input lies,
//! and where that of an output goes.

use std::{fmt, sync::Arc};

use galatea_types::{Buffer, Error, Result};

/// Finds registered regions by their names.
pub trait Regions: Send + Sync {
    /// The region called `name`; "not found" where there is none.
    fn find(&self, name: &str) -> Result<Arc<dyn Region>>;
}

/// A registered region. Offsets and sizes are in bytes, as the client gave them: an implementation checks them.
pub trait Region: fmt::Debug + Send + Sync {
    /// The `byte_size` bytes from `offset` on, without a copy where the memory allows it. They stay readable as long as
    /// the buffer lives, even when the region is unregistered.
    fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer>;

    /// Writes `data` to the region from `offset` on.
    fn write(&self, offset: u64, data: &Buffer) -> Result<()>;
}

/// A part of a region that a tensor lies in.
#[derive(Clone, Debug)]
pub struct RegionSpan {
    /// The whole.
    pub region: Arc<dyn Region>,
    /// Where the tensor starts.
    pub offset: u64,
    /// What it may take.
    pub byte_size: u64,
}

impl RegionSpan {
    pub(crate) fn read(&self) -> Result<Buffer> {
        self.region.read(self.offset, self.byte_size)
    }
}

/// For a server at which no region can be registered: none is found.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRegions;

impl Regions for NoRegions {
    fn find(&self, name: &str) -> Result<Arc<dyn Region>> {
        Err(Error::not_found(format!("Unable to find shared memory region: '{name}'")))
    }
}

#[cfg(test)]
mod tests;

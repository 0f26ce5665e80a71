//! The arena for tensors from the worker to the server.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use galatea_types::LockExt as _;

use crate::{
    memory::{limits::ArenaLimits, mapping, mapping::Mapping},
    wire::ProtocolError,
};

/// The arena the worker writes and the server reads. The worker allocates its blocks.
pub(crate) struct OutputArena {
    pub memory: OwnedFd,
    max: Option<usize>,
    mapping: Mutex<Arc<Mapping>>,
}

impl OutputArena {
    /// Opens an arena over memory that this side made, or the other: a worker reads its inputs there.
    pub fn over(memory: OwnedFd, limits: ArenaLimits) -> io::Result<Self> {
        let mapping = Mutex::new(Arc::new(Mapping::new(&memory, false)?));
        Ok(Self { memory, max: limits.max, mapping })
    }

    /// Copies a range. Later writes of the other side do not change the copy.
    pub fn copy(&self, offset: u64, length: usize) -> Result<Vec<u8>, ProtocolError> {
        let mapping = self.mapping(offset, length)?;
        let copy = usize::try_from(offset).ok().and_then(|offset| mapping.copy(offset, length));
        copy.ok_or(ProtocolError("there is no memory for a block"))
    }

    /// Returns a mapping that holds this range.
    pub fn mapping(&self, offset: u64, length: usize) -> Result<Arc<Mapping>, ProtocolError> {
        const OUTSIDE: ProtocolError = ProtocolError("a block lies outside of the shared memory");
        let offset = usize::try_from(offset).map_err(|_| OUTSIDE)?;
        let end = offset.checked_add(length).ok_or(OUTSIDE)?;
        let mut mapping = self.mapping.lock_unpoisoned();
        if mapping.length() < end {
            // The worker enlarged the arena. The kernel knows its size; the worker is not trusted with it.
            let size = mapping::size_of(&self.memory).map_err(|_| OUTSIDE)?;
            if size < end {
                return Err(OUTSIDE);
            }
            if self.max.is_some_and(|max| size > max) {
                return Err(ProtocolError("the shared memory is larger than shm-max-byte-size"));
            }
            let larger = Mapping::new(&self.memory, false);
            *mapping =
                Arc::new(larger.map_err(|_| ProtocolError("shared memory cannot be mapped"))?);
        }
        Ok(mapping.clone())
    }
}

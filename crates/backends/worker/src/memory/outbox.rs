//! The arena for tensors on their way from the worker.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use galatea_types::LockExt as _;

use crate::{
    memory::{limits::ArenaLimits, mapping, mapping::Mapping},
    wire::Malformed,
};

/// The arena the worker writes and the server reads. The worker allocates its blocks.
pub(crate) struct Outbox {
    pub memory: OwnedFd,
    max: Option<usize>,
    mapping: Mutex<Arc<Mapping>>,
}

impl Outbox {
    /// Over memory that this side made, or the other: a worker reads its inputs there.
    pub fn over(memory: OwnedFd, limits: ArenaLimits) -> io::Result<Self> {
        let mapping = Mutex::new(Arc::new(Mapping::new(&memory, false)?));
        Ok(Self { memory, max: limits.max, mapping })
    }

    /// A copy of this range, whatever the other side does with it meanwhile.
    pub fn copy(&self, offset: u64, length: usize) -> Result<Vec<u8>, Malformed> {
        let mapping = self.mapping(offset, length)?;
        let copy = usize::try_from(offset).ok().and_then(|offset| mapping.copy(offset, length));
        copy.ok_or(Malformed("there is no memory for a block"))
    }

    /// A mapping that holds this range.
    pub fn mapping(&self, offset: u64, length: usize) -> Result<Arc<Mapping>, Malformed> {
        const OUTSIDE: Malformed = Malformed("a block lies outside of the shared memory");
        let offset = usize::try_from(offset).map_err(|_| OUTSIDE)?;
        let end = offset.checked_add(length).ok_or(OUTSIDE)?;
        let mut mapping = self.mapping.lock_unpoisoned();
        if mapping.length() < end {
            // The worker made it larger. The kernel knows its size; the worker is not trusted with it.
            let size = mapping::size_of(&self.memory).map_err(|_| OUTSIDE)?;
            if size < end {
                return Err(OUTSIDE);
            }
            if self.max.is_some_and(|max| size > max) {
                return Err(Malformed("the shared memory is larger than shm-max-byte-size"));
            }
            let larger = Mapping::new(&self.memory, false);
            *mapping = Arc::new(larger.map_err(|_| Malformed("shared memory cannot be mapped"))?);
        }
        Ok(mapping.clone())
    }
}

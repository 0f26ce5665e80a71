//! The arena for tensors from the server to the worker.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use galatea_types::{Error, LockExt as _, Result};
use rustix::fs::FallocateFlags;

use crate::memory::{free_list::FreeList, limits::ArenaLimits, mapping, mapping::Mapping};

/// The arena the server writes and the worker reads: large inputs, and answers to its own requests.
pub(crate) struct InputArena {
    pub memory: OwnedFd,
    limits: ArenaLimits,
    state: Mutex<State>,
}

struct State {
    free: FreeList,
    mapping: Arc<Mapping>,
    /// True if anything was written since the memory was last given back to the kernel.
    is_dirty: bool,
}

impl InputArena {
    pub fn new(limits: ArenaLimits) -> io::Result<Self> {
        Self::over(mapping::create("galatea-inbox", limits.initial)?, limits)
    }

    /// Opens an arena over memory that the other side made. All of it is free: a worker writes its outputs there.
    pub fn over(memory: OwnedFd, limits: ArenaLimits) -> io::Result<Self> {
        let mapping = Arc::new(Mapping::new(&memory, true)?);
        let mut free = FreeList::default();
        free.grow(mapping.length());
        let state = Mutex::new(State { free, mapping, is_dirty: false });
        Ok(Self { memory, limits, state })
    }

    /// Copies `bytes` into a block of their own. The worker gives the block back, or [`InputArena::free`] frees it.
    pub fn put(&self, bytes: &[u8]) -> Result<u64> {
        let (offset, mapping) = self.take(bytes.len())?;
        // SAFETY: the block was free until now and has been given to nobody else.
        if unsafe { mapping.write(offset, bytes) } {
            return Ok(offset as u64);
        }
        Err(Error::internal("a block of shared memory lies outside of it"))
    }

    /// Takes a block of `length` bytes. Returns its offset and the mapping it lies in.
    fn take(&self, length: usize) -> Result<(usize, Arc<Mapping>)> {
        let mut state = self.state.lock_unpoisoned();
        state.is_dirty = true;
        let offset = match state.free.take(length) {
            Some(offset) => offset,
            None => {
                self.grow(&mut state, length)?;
                let offset = state.free.take(length);
                offset.ok_or_else(|| Error::internal("shared memory grew too little"))?
            }
        };
        Ok((offset, state.mapping.clone()))
    }

    /// Doubles the arena, or more if `length` needs it. Blocks in the old mapping stay valid: it shows the same memory.
    fn grow(&self, state: &mut State, length: usize) -> Result<()> {
        let size = state.free.size();
        let max = self.limits.max.unwrap_or(usize::MAX);
        let needed = state.free.size_for(length).filter(|&needed| needed <= max);
        let needed = needed.ok_or_else(|| {
            Error::unavailable(format!(
                "no room for {length} bytes in the shared memory of a Python model: it has {size} bytes and may not have \
                 more than {max} (shm-max-byte-size)"
            ))
        })?;
        let wanted = size.saturating_mul(2).max(size.saturating_add(self.limits.growth));
        let target = wanted.max(needed).min(max);
        let failed = |error: io::Error| {
            Error::unavailable(format!("shared memory cannot grow to {target} bytes: {error}"))
        };
        rustix::fs::ftruncate(&self.memory, target as u64).map_err(|e| failed(e.into()))?;
        state.mapping = Arc::new(Mapping::new(&self.memory, true).map_err(failed)?);
        state.free.grow(target);
        Ok(())
    }

    /// Frees a block. Returns false if there is no such block.
    pub fn free(&self, offset: u64) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        self.state.lock_unpoisoned().free.free(offset)
    }

    /// Gives the memory back to the kernel when no block is in use. Returns true if there is nothing left to do.
    pub fn trim(&self) -> bool {
        let mut state = self.state.lock_unpoisoned();
        if !state.is_dirty {
            return true;
        }
        if !state.free.is_unused() {
            return false;
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Fails on kernels without it. Then the memory stays with the worker, which costs only that memory.
        let _ = rustix::fs::fallocate(&self.memory, flags, 0, state.free.size() as u64);
        state.is_dirty = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ArenaLimits = ArenaLimits { initial: 4096, growth: 4096, max: Some(64 << 10) };

    #[test]
    fn the_arena_grows_up_to_its_limit() {
        let inbox = InputArena::new(LIMITS).expect("memory");
        let first = inbox.put(&[1; 4096]).expect("fits");
        let second = inbox.put(&[2; 40_000]).expect("grows");
        assert_ne!(first, second);
        let error = inbox.put(&[3; 40_000]).expect_err("too much");
        assert!(error.message().contains("shm-max-byte-size"), "{error}");
        assert!(inbox.free(second));
        inbox.put(&[3; 40_000]).expect("fits again");
        assert!(!inbox.free(77));
    }

    #[test]
    fn the_arena_shrinks_when_it_is_empty() {
        let inbox = InputArena::new(LIMITS).expect("memory");
        let block = inbox.put(&[1; 4096]).expect("fits");
        let used = || rustix::fs::fstat(&inbox.memory).expect("known").st_blocks;
        assert!(used() > 0);
        assert!(!inbox.trim());
        assert!(inbox.free(block));
        assert!(inbox.trim());
        assert_eq!(used(), 0);
    }
}

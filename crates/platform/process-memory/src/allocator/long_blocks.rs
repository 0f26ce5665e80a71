//! Limits the memory of freed long blocks that is kept for later ones.

use std::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};

use super::{ALLOCATOR, LONG_BLOCK, control};

/// Queries of the allocator per kept limit of freed bytes. Each takes some microseconds.
const LOOKS: usize = 8;

/// The arena of the long blocks.
#[derive(Debug)]
pub(super) struct LongBlocks {
    arena: AtomicU32,
    /// Most freed bytes that may stay; all of them until a limit is set.
    keep: AtomicUsize,
    /// Bytes freed since the allocator was last queried.
    freed: AtomicUsize,
}

impl LongBlocks {
    pub const fn new() -> Self {
        Self {
            arena: AtomicU32::new(0),
            keep: AtomicUsize::new(usize::MAX),
            freed: AtomicUsize::new(0),
        }
    }

    /// Sets how many bytes may stay. Returns false if the allocator does not report their arena and its free bytes.
    pub fn keep(&self, bytes: usize) -> bool {
        let Some(arena) = arena() else { return false };
        self.arena.store(arena, Ordering::Relaxed);
        self.keep.store(bytes, Ordering::Relaxed);
        control::free_bytes(arena).is_some()
    }

    /// Counts a freed block. The order of the counters does not matter: a late update only delays a query.
    #[inline]
    pub fn freed(&self, bytes: usize) {
        let keep = self.keep.load(Ordering::Relaxed);
        let freed = self.freed.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if freed >= keep / LOOKS && keep != usize::MAX {
            self.look(keep);
        }
    }

    #[cold]
    fn look(&self, keep: usize) {
        self.freed.store(0, Ordering::Relaxed);
        let arena = self.arena.load(Ordering::Relaxed);
        if control::free_bytes(arena).is_some_and(|free| free > keep) {
            control::purge(arena);
        }
    }
}

fn arena() -> Option<u32> {
    let layout = Layout::from_size_align(LONG_BLOCK, 1).ok()?;
    // SAFETY: the layout is not empty, and the block is given back once, with the same layout.
    unsafe {
        let block = ALLOCATOR.alloc(layout);
        let arena = control::arena_of(block);
        if !block.is_null() {
            ALLOCATOR.dealloc(block, layout);
        }
        arena
    }
}

//! The allocator of the program.

mod control;
mod long_blocks;

use std::{
    alloc::{GlobalAlloc, Layout},
    ffi::c_char,
};

use tikv_jemallocator::Jemalloc;

use self::long_blocks::LongBlocks;

/// The allocator for Rust code. jemalloc gives free pages of a burst back to the system by itself, whichever thread used
/// them. In the C library's allocator each thread's heap keeps the largest part that was ever in use (see ADR 15).
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// The value for `#[global_allocator]`.
pub const ALLOCATOR: Allocator = Allocator;

/// Options that jemalloc reads when it starts. Free pages go back within this many milliseconds, by a thread of its own, so
/// that an idle process returns them too. Blocks of at least [`LONG_BLOCK`] bytes have their own arena.
const OPTIONS: &[u8] =
    b"background_thread:true,max_background_threads:1,dirty_decay_ms:3000,muzzy_decay_ms:0,\
    oversize_threshold:2097152\0";

/// Bytes of a long block, the same number as in [`OPTIONS`].
const LONG_BLOCK: usize = 2 << 20;

static LONG_BLOCKS: LongBlocks = LongBlocks::new();

/// Limits the freed memory that is kept of blocks of 2 MiB and more, to about this many bytes. The freeing thread itself
/// gives further memory back to the system. Without such a limit jemalloc's thread does it, which is too late if many long
/// requests are refused one after the other: each new request gets fully resident memory, even if it uses little. Returns
/// false if the limit cannot be set.
pub fn keep_of_long_blocks(bytes: usize) -> bool {
    LONG_BLOCKS.keep(bytes)
}

// SAFETY: every call goes to jemalloc as it is; between them only numbers are read and free pages given back.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Jemalloc.dealloc(block, layout) };
        if layout.size() >= LONG_BLOCK {
            LONG_BLOCKS.freed(layout.size());
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let moved = unsafe { Jemalloc.realloc(block, layout, size) };
        if layout.size() >= LONG_BLOCK {
            LONG_BLOCKS.freed(layout.size());
        }
        moved
    }
}

/// The symbol in which jemalloc finds its options.
#[unsafe(export_name = "_rjem_malloc_conf")]
static CONF: Options = Options(OPTIONS.as_ptr().cast());

#[repr(transparent)]
struct Options(*const c_char);

// SAFETY: points to a constant.
unsafe impl Sync for Options {}

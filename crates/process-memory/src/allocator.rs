//! The allocator of the program.

use std::{
    alloc::{GlobalAlloc, Layout},
    ffi::{CStr, CString, c_char, c_uint},
    ptr,
};

/// jemalloc gives the pages that a burst has left free back to the system by itself, whichever thread used them; of the C
/// library's allocator each thread's heap keeps the largest part that was ever in use (see ADR 15).
pub type Allocator = tikv_jemallocator::Jemalloc;

/// For `#[global_allocator]`.
pub const ALLOCATOR: Allocator = tikv_jemallocator::Jemalloc;

/// What jemalloc reads when it starts: free pages go back within so many milliseconds, by one thread of its own, so that an
/// idle process returns them too. Blocks from [`LONG_BLOCK`] bytes on have an arena of their own.
const OPTIONS: &[u8] =
    b"background_thread:true,max_background_threads:1,dirty_decay_ms:3000,muzzy_decay_ms:0,\
    oversize_threshold:2097152\0";

/// The same number as in [`OPTIONS`].
const LONG_BLOCK: usize = 2 << 20;

/// From now on blocks of 2 MiB and more go back to the system when they are freed, on the thread that frees them. Otherwise
/// they wait for jemalloc's thread, which comes too late where many long requests are refused one after the other: the next
/// request is given memory that is all there, however little of it is used yet. Says whether that could be arranged.
pub fn return_long_blocks_at_once() -> bool {
    let Ok(layout) = Layout::from_size_align(LONG_BLOCK, 1) else { return false };
    // SAFETY: the layout is not empty, and the block is given back once, with the same layout.
    let arena = unsafe {
        let block = ALLOCATOR.alloc(layout);
        let arena = arena_of(block);
        ALLOCATOR.dealloc(block, layout);
        arena
    };
    arena.is_some_and(|arena| {
        CString::new(format!("arena.{arena}.dirty_decay_ms")).is_ok_and(|name| set(&name, 0))
    })
}

/// The number of the arena that a block comes from.
fn arena_of(block: *mut u8) -> Option<c_uint> {
    let (mut arena, mut size) = (c_uint::MAX, size_of::<c_uint>());
    let mut block = block;
    // SAFETY: takes the address of a pointer, and writes a number of the size told; a block of another allocator, or none,
    // is refused.
    let error = unsafe {
        tikv_jemalloc_sys::mallctl(
            c"arenas.lookup".as_ptr(),
            (&raw mut arena).cast(),
            &raw mut size,
            (&raw mut block).cast(),
            size_of::<*mut u8>(),
        )
    };
    (error == 0).then_some(arena)
}

/// Sets one of the allocator's numbers that are signed and as long as a pointer.
fn set(name: &CStr, value: isize) -> bool {
    let mut value = value;
    // SAFETY: reads a number of the size told, and writes nothing.
    let error = unsafe {
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            (&raw mut value).cast(),
            size_of::<isize>(),
        )
    };
    error == 0
}

/// Where jemalloc looks for its options.
#[unsafe(export_name = "_rjem_malloc_conf")]
static CONF: Options = Options(OPTIONS.as_ptr().cast());

#[repr(transparent)]
struct Options(*const c_char);

// SAFETY: points to a constant.
unsafe impl Sync for Options {}

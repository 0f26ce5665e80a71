//! The allocator of the program.

use std::ffi::c_char;

/// jemalloc gives the pages that a burst has left free back to the system by itself, whichever thread used them; of the C
/// library's allocator each thread's heap keeps the largest part that was ever in use (see ADR 15).
pub type Allocator = tikv_jemallocator::Jemalloc;

/// For `#[global_allocator]`.
pub const ALLOCATOR: Allocator = tikv_jemallocator::Jemalloc;

/// What jemalloc reads when it starts: free pages go back within so many milliseconds, by one thread of its own, so that an
/// idle process returns them too.
const OPTIONS: &[u8] =
    b"background_thread:true,max_background_threads:1,dirty_decay_ms:3000,muzzy_decay_ms:0\0";

/// Where jemalloc looks for its options.
#[unsafe(export_name = "_rjem_malloc_conf")]
static CONF: Options = Options(OPTIONS.as_ptr().cast());

#[repr(transparent)]
struct Options(*const c_char);

// SAFETY: points to a constant.
unsafe impl Sync for Options {}

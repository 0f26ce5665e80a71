//! The stand-ins for other systems than Linux, which keep memory and code as they like.

use std::alloc::System;

/// The system's allocator.
pub type Allocator = System;

/// For `#[global_allocator]`.
pub const ALLOCATOR: Allocator = System;

/// Says that the limit cannot be arranged.
pub fn keep_of_long_blocks(_bytes: usize) -> bool {
    false
}

/// Does nothing.
pub fn release_code() {}

/// Counts no libraries.
pub fn opened_libraries() -> u64 {
    0
}

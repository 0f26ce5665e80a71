//! Stand-ins for systems other than Linux, which manage memory and code as they like.

use std::alloc::System;

/// The system's allocator.
pub type Allocator = System;

/// The value for `#[global_allocator]`.
pub const ALLOCATOR: Allocator = System;

/// Returns false: the limit cannot be set.
pub fn keep_of_long_blocks(_bytes: usize) -> bool {
    false
}

/// Does nothing.
pub fn release_code() {}

/// Returns 0: libraries are not counted.
pub fn opened_libraries() -> u64 {
    0
}

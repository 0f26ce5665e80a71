//! Memory of this process: its allocator, its limits by the machine and its control groups, its current size, and the return
//! of memory that native libraries have freed.

#![warn(missing_docs)]

#[cfg(target_os = "linux")]
mod allocator;
mod available;
#[cfg(target_os = "linux")]
mod code;
#[cfg(not(target_os = "linux"))]
mod other_systems;

use std::fs;

pub use self::available::available;
#[cfg(not(target_os = "linux"))]
pub use self::other_systems::{
    ALLOCATOR, Allocator, keep_of_long_blocks, opened_libraries, release_code,
};
#[cfg(target_os = "linux")]
pub use self::{
    allocator::{ALLOCATOR, Allocator, keep_of_long_blocks},
    code::{opened_libraries, release_code},
};

/// Returns this process's bytes in the machine's memory, or `None` if the system does not report them.
pub fn resident() -> Option<usize> {
    kib_of(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Gives free pages of the C library's allocator back to the system, also those between used ones. Native libraries of
/// backends have freed them; Rust code has [`Allocator`], which does this by itself. Takes milliseconds if much is free;
/// other threads may wait for memory that long.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time, by any thread.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Returns the free bytes of the C library's allocator, in the machine's memory or given back. The difference of two calls
/// is the memory freed between them. Counted modulo 4 GiB, and 0 if the C library does not report it.
pub fn free() -> u32 {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time, by any thread.
    return unsafe { libc::mallinfo() }.fordblks.cast_unsigned();
    #[cfg(not(target_env = "gnu"))]
    0
}

/// Returns the number behind `name` in a file of `/proc` whose lines end with `kB`, in bytes.
fn kib_of(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let text = "VmHWM:\t 900 kB\nVmRSS:\t  24684084 kB\n";
        assert_eq!(kib_of(text, "VmRSS:"), Some(25_276_502_016));
        assert_eq!(kib_of(text, "VmSwap:"), None);
        assert!(resident().is_some_and(|bytes| bytes > 1 << 20));
    }

    /// The blocks are so small that the allocator keeps them, with used ones between them.
    #[test]
    fn free_memory_returns_to_the_system() {
        let mut blocks: Vec<Option<Vec<u8>>> =
            (0..64 * 1024).map(|_| Some(vec![1; 1024])).collect();
        let (full, free_before) = (resident().expect("known"), free());
        let used = blocks.iter_mut().enumerate().filter(|(number, _)| number % 64 != 0);
        used.for_each(|(_, block)| *block = None);
        assert!(free().wrapping_sub(free_before) > 32 << 20);
        trim();
        let after = resident().expect("known");
        assert!(after + (32 << 20) < full, "{after} of {full} bytes are left");
        assert_eq!(blocks.iter().flatten().count(), 1024);
    }
}

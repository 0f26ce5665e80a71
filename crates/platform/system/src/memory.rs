//! Memory without a name, which processes share by its descriptor.

use std::{fs::File, io};

/// Makes memory of fixed size with `content` at its start. All its bytes are reserved now: a process that writes beyond the
/// system's memory would be killed. The system shows `name` in lists of descriptors, and takes at most 249 bytes.
///
/// # Errors
/// Those of the system, of kind `Unsupported` if it has no such memory.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn unnamed_memory(name: &str, byte_size: u64, content: &[u8]) -> io::Result<File> {
    use std::os::unix::fs::FileExt as _;

    use rustix::fs::{
        FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create,
    };

    let memory = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let file = File::from(memory);
    fallocate(&file, FallocateFlags::empty(), 0, byte_size)?;
    file.write_all_at(content, 0)?;
    // A process that maps it need not fear that it shrinks.
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Makes memory of fixed size: not on this system.
///
/// # Errors
/// Always of kind `Unsupported`.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn unnamed_memory(_name: &str, _byte_size: u64, _content: &[u8]) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no memory without a name"))
}

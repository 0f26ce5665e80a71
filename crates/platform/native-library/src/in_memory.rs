//! Libraries whose content is written in memory.

#[cfg(target_os = "linux")]
use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsRawFd as _,
};

#[cfg(target_os = "linux")]
use libloading::os::unix::{RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use crate::Handle;

/// A library that has no file. It stays open, and so does its memory: the loader takes a path that it has seen for the same
/// library.
#[derive(Debug)]
pub struct MemoryLibrary {
    _handle: Handle,
    #[cfg(target_os = "linux")]
    _memory: File,
}

/// Opens a library of this content, which has no code. With `is_for_all`, libraries that are opened later find its functions
/// without naming it.
///
/// # Errors
/// The reason of the system or the loader.
#[cfg(target_os = "linux")]
pub fn open_from_memory(content: &[u8], is_for_all: bool) -> Result<MemoryLibrary, String> {
    let memory = write(content).map_err(|error| error.to_string())?;
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    let scope = if is_for_all { RTLD_GLOBAL } else { RTLD_LOCAL };
    // SAFETY: the library has no code that could run.
    let handle = unsafe { Handle::open(Some(path), RTLD_NOW | scope) };
    let handle = handle.map_err(|error| crate::reason(&error))?;
    Ok(MemoryLibrary { _handle: handle, _memory: memory })
}

/// Refuses: this system opens no library from memory.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn open_from_memory(_: &[u8], _: bool) -> Result<MemoryLibrary, String> {
    Err("this is supported on Linux only".to_owned())
}

#[cfg(target_os = "linux")]
fn write(content: &[u8]) -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut memory: File = rustix::fs::memfd_create("galatea-library", flags)?.into();
    memory.write_all(content)?;
    Ok(memory)
}

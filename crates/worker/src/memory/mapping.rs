//! Anonymous files of memory and their mappings into this process.

use std::{io, os::fd::AsFd, ptr};

use rustix::{
    fs::{MemfdFlags, SealFlags},
    mm::{MapFlags, ProtFlags},
};

/// A memfd of `size` bytes, sealed: it can grow and never shrink.
pub(crate) fn create(name: &str, size: usize) -> io::Result<std::os::fd::OwnedFd> {
    let memory = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&memory, size as u64)?;
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(memory)
}

/// Whether memory that came from elsewhere is what [`create`] makes.
pub(crate) fn is_sealed(memory: impl AsFd) -> bool {
    rustix::fs::fcntl_get_seals(memory).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

pub(crate) fn size_of(memory: impl AsFd) -> io::Result<usize> {
    let size = rustix::fs::fstat(memory)?.st_size;
    usize::try_from(size).map_err(io::Error::other)
}

/// Part of the address space that shows the beginning of shared memory.
///
/// Invariant: `length` bytes from `start` are mapped until this is dropped, and the memory behind them is
/// sealed against shrinking, so that touching them never fails.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    length: usize,
    is_writable: bool,
}

// SAFETY: the mapping belongs to the process, not to a thread; all access goes through the methods below.
unsafe impl Send for Mapping {}
// SAFETY: as above; writing needs a promise of its caller (see `write`).
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `memory` must come from [`create`], in this process or the other.
    pub fn new(memory: impl AsFd, is_writable: bool) -> io::Result<Self> {
        let length = size_of(memory.as_fd())?;
        if length == 0 {
            return Ok(Self { start: ptr::null_mut(), length, is_writable });
        }
        let access = if is_writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at a place the kernel chooses: it replaces nothing.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length, access, MapFlags::SHARED, memory, 0)?
        };
        Ok(Self { start: start.cast(), length, is_writable })
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// `None`: not within the mapping.
    ///
    /// The worker can change these bytes while they are read. That only damages its own response: no check of
    /// a tensor's bytes is relied on by later reads, each of which checks bounds again.
    pub fn get(&self, offset: usize, length: usize) -> Option<&[u8]> {
        if offset.checked_add(length)? > self.length {
            return None;
        }
        if length == 0 {
            return Some(&[]);
        }
        // SAFETY: within the mapping by the check above, which stays readable by the type's invariant.
        Some(unsafe { std::slice::from_raw_parts(self.start.add(offset), length) })
    }

    /// Copies `bytes` to `offset`. False: not within the mapping, or it is not for writing.
    ///
    /// # Safety
    /// Nobody in this process reads or writes there at the same time.
    pub unsafe fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let end = offset.checked_add(bytes.len());
        if !self.is_writable || end.is_none_or(|end| end > self.length) {
            return false;
        }
        if !bytes.is_empty() {
            // SAFETY: within the mapping by the check above; `bytes` cannot overlap it, for no
            // slice of this part exists by the caller's contract.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len());
            }
        }
        true
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: mapped by `new` with this length; no slice of it can outlive `self`.
            let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.length) };
        }
    }
}

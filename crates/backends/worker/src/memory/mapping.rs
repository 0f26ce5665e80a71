//! Anonymous files of memory and their mappings into this process.

use std::{
    io,
    mem::{self, MaybeUninit},
    os::fd::AsFd,
    ptr, slice,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

use rustix::{
    fs::{MemfdFlags, SealFlags},
    mm::{MapFlags, ProtFlags},
};

/// Creates a memfd of `size` bytes. It is sealed: it can grow but never shrink.
pub(crate) fn create(name: &str, size: usize) -> io::Result<std::os::fd::OwnedFd> {
    let memory = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&memory, size as u64)?;
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(memory)
}

/// Returns true if memory from another process is sealed as [`create`] seals it.
pub(crate) fn is_sealed(memory: impl AsFd) -> bool {
    rustix::fs::fcntl_get_seals(memory).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

pub(crate) fn size_of(memory: impl AsFd) -> io::Result<usize> {
    let size = rustix::fs::fstat(memory)?.st_size;
    usize::try_from(size).map_err(io::Error::other)
}

/// Bytes copied in one step.
const WORD: usize = mem::size_of::<AtomicU64>();

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
    /// Maps `memory`, which must come from [`create`], in this process or the other.
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

    /// Returns a slice of the mapping, or `None` if the range is not within it.
    ///
    /// # Safety
    /// Nobody may write there, in any process, while the slice exists.
    pub unsafe fn get(&self, offset: usize, length: usize) -> Option<&[u8]> {
        if offset.checked_add(length)? > self.length {
            return None;
        }
        if length == 0 {
            return Some(&[]);
        }
        // SAFETY: within the mapping by the check above, which stays readable by the type's invariant; not written to
        // by the caller's contract.
        Some(unsafe { slice::from_raw_parts(self.start.add(offset), length) })
    }

    /// Copies memory that another process may change meanwhile. The copy is then some mixture of old and new bytes, and
    /// changes no more. Returns `None` if the range is not within the mapping, or there is no memory for the copy.
    pub fn copy(&self, offset: usize, length: usize) -> Option<Vec<u8>> {
        if offset.checked_add(length)? > self.length {
            return None;
        }
        let mut copy = Vec::new();
        copy.try_reserve_exact(length).ok()?;
        if length == 0 {
            return Some(copy);
        }
        // SAFETY: within the mapping by the check above, which stays readable by the type's invariant. What others
        // change at any time may be seen as atomics: they are read and never written here, and loads of up to a
        // word's width need no right to write.
        let bytes = unsafe { slice::from_raw_parts(self.start.add(offset).cast(), length) };
        // SAFETY: every value of the bytes of a word is one of the word.
        let (front, words, back) = unsafe { <[AtomicU8]>::align_to::<AtomicU64>(bytes) };
        copy.extend(front.iter().map(|byte| byte.load(Ordering::Relaxed)));
        let (target, _) = copy.spare_capacity_mut().as_chunks_mut::<WORD>();
        for (to, from) in target.iter_mut().zip(words) {
            *to = from.load(Ordering::Relaxed).to_ne_bytes().map(MaybeUninit::new);
        }
        // SAFETY: the bytes of these words were written just now: there is room for all of `length`.
        unsafe { copy.set_len(front.len() + words.len() * WORD) };
        copy.extend(back.iter().map(|byte| byte.load(Ordering::Relaxed)));
        Some(copy)
    }

    /// Copies `bytes` to `offset`. Returns false if the range is not within the mapping, or the mapping is read-only.
    ///
    /// # Safety
    /// Nobody in this process may read or write there at the same time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_exactly_at_every_offset() {
        let memory = create("test", 4096).expect("memory");
        let bytes: Vec<u8> =
            (0..4096_u32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
        let mapping = Mapping::new(&memory, true).expect("mapped");
        // SAFETY: no other thread has the mapping.
        assert!(unsafe { mapping.write(0, &bytes) });
        for offset in (0..20).chain(4070..4097) {
            for length in (0..40).filter(|length| offset + length <= 4096) {
                let copy = mapping.copy(offset, length).expect("inside");
                assert_eq!(copy, bytes[offset..offset + length], "{offset} {length}");
            }
        }
        assert_eq!(mapping.copy(4090, 7), None);
        assert_eq!(mapping.copy(usize::MAX, 2), None);
    }
}

//! The memory of one region.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileExt,
    },
};

use rustix::{
    fs::{FallocateFlags, Mode, fallocate},
    shm,
};

/// Memory that a server can map. A name that it has is removed when this is dropped; the memory lives on while a server maps it.
pub(super) struct RegionMemory {
    file: File,
    /// The name for `shm_open`; `None`: only the descriptor leads to the memory.
    key: Option<String>,
}

impl RegionMemory {
    /// Makes POSIX shared memory of this name with `content` at its start.
    pub fn named(name: &str, byte_size: u64, content: &[u8]) -> io::Result<Self> {
        let key = format!("/{name}");
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let file = File::from(shm::open(&key, flags, Mode::RUSR | Mode::WUSR)?);
        // From here on the name is removed after an error, too.
        let memory = Self { file, key: Some(key) };
        memory.fill(byte_size, content)?;
        Ok(memory)
    }

    /// Makes memory without a name in the file system, of fixed size, with `content` at its start.
    pub fn unnamed(name: &str, byte_size: u64, content: &[u8]) -> io::Result<Self> {
        Ok(Self { file: galatea_system::unnamed_memory(name, byte_size, content)?, key: None })
    }

    /// Reserves all bytes now: a server that writes beyond the system's memory would be killed.
    fn fill(&self, byte_size: u64, content: &[u8]) -> io::Result<()> {
        fallocate(&self.file, FallocateFlags::empty(), 0, byte_size)?;
        self.file.write_all_at(content, 0)
    }

    /// Returns the name for `shm_open`, if the memory has one.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for RegionMemory {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // It is unlinked already, or nobody is left to report to.
            let _ = shm::unlink(key);
        }
    }
}

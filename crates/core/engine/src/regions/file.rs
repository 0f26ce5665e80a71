//! A region of system shared memory, read and written through its descriptor.
//!
//! The memory is not mapped. A client may truncate a mapped file, which ends the process that touches it with SIGBUS, and may
//! write to bytes that were checked. `pread` makes a private copy, and reports a truncation as an error.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::{fd::BorrowedFd, unix::fs::FileExt},
    path::Path,
    sync::Arc,
};

use galatea_types::{Buffer, Error, MemoryBudget, Region, Result};
use rustix::{buffer::spare_capacity, io::pread};

use super::{RegionDescription, bounds::Bounds, passed};

/// The prefix of keys that Triton's Python backend uses.
const RESERVED: &str = "triton_python_backend_shm_region_";

/// A range of an open file.
#[derive(Debug)]
pub(super) struct FileRegion {
    pub description: RegionDescription,
    file: File,
    memory: Arc<MemoryBudget>,
}

impl FileRegion {
    /// Opens the file in `folder` that the key of the description names.
    pub fn open(
        folder: &Path,
        description: RegionDescription,
        memory: Arc<MemoryBudget>,
    ) -> Result<Self> {
        let RegionDescription { name, key, offset, byte_size } = &description;
        let file = open_file(folder, file_name(name, key)?).map_err(|error| {
            Error::internal(format!("Unable to open shared memory region: '{key}'"))
                .with_source(error)
        })?;
        let length = file.metadata().map_err(|error| Error::internal(error.to_string()))?.len();
        if offset.checked_add(*byte_size).is_none_or(|end| end > length) {
            return Err(not_registered(name, "invalid args"));
        }
        // Clients of Triton map the same range, and Triton lets them register no other.
        if *byte_size == 0 || !offset.is_multiple_of(rustix::param::page_size() as u64) {
            return Err(not_registered(name, "unable to process address spaceInvalid argument"));
        }
        Ok(Self { description, file, memory })
    }

    /// Opens the memory of a descriptor that a client has passed.
    pub fn of_descriptor(
        description: RegionDescription,
        descriptor: BorrowedFd<'_>,
        memory: Arc<MemoryBudget>,
    ) -> Result<Self> {
        let RegionDescription { name, offset, byte_size, .. } = &description;
        let file = passed::open(descriptor).map_err(|reason| not_registered(name, &reason))?;
        let length = file.metadata().map_err(|error| Error::internal(error.to_string()))?.len();
        if *byte_size == 0 || offset.checked_add(*byte_size).is_none_or(|end| end > length) {
            let reason = format!(
                "the passed memory has {length} bytes, but offset is {offset} and byte_size is {byte_size}"
            );
            return Err(not_registered(name, &reason));
        }
        Ok(Self { description, file, memory })
    }

    fn bounds(&self) -> Bounds<'_> {
        let RegionDescription { name, byte_size, .. } = &self.description;
        Bounds { name, byte_size: *byte_size }
    }

    /// Returns the error of a transfer of `byte_size` bytes from `offset` on.
    fn failure(&self, action: &str, offset: u64, byte_size: usize, error: io::Error) -> Error {
        let name = &self.description.name;
        let reason = match error.kind() {
            ErrorKind::UnexpectedEof => "its memory has shrunk".to_owned(),
            _ => error.to_string(),
        };
        let text = format!(
            "Unable to {action} {byte_size} bytes at offset {offset} of shared memory region '{name}': {reason}"
        );
        Error::internal(text).with_source(error)
    }
}

impl Region for FileRegion {
    fn check(&self, offset: u64, byte_size: u64) -> Result<()> {
        self.bounds().check(offset, byte_size)
    }

    fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer> {
        self.check(offset, byte_size)?;
        self.bounds().copy(&self.memory, byte_size, |block, size| {
            let start = self.description.offset + offset;
            let read = block.append_read(size, |bytes, read| {
                pread(&self.file, spare_capacity(bytes), start + read as u64)?;
                Ok(())
            });
            read.map_err(|error| self.failure("read", offset, size, error))
        })
    }

    fn write(&self, offset: u64, data: &Buffer) -> Result<()> {
        self.check(offset, data.len() as u64)?;
        let bytes = data.to_host()?;
        let start = self.description.offset + offset;
        // A write would extend a file that its client has truncated.
        let is_cut = |length| length < start + bytes.len() as u64;
        let written = match self.file.metadata() {
            Ok(metadata) if is_cut(metadata.len()) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => self.file.write_all_at(&bytes, start),
            Err(error) => Err(error),
        };
        written.map_err(|error| self.failure("write", offset, bytes.len(), error))
    }
}

/// Returns the file name of a key, which begins with any number of slashes.
fn file_name<'k>(name: &str, key: &'k str) -> Result<&'k str> {
    let file = key.trim_start_matches('/');
    let text = if file.is_empty() {
        format!("cannot register shared memory region '{name}' - invalid shm key '{key}'")
    } else if file.starts_with(RESERVED) {
        format!(
            "cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved prefix \
             '{RESERVED}'"
        )
    } else {
        return Ok(file);
    };
    Err(Error::invalid_arg(text))
}

/// Opens a regular file that is in `folder` itself. Does not follow links, and does not wait for a writer.
fn open_file(folder: &Path, name: &str) -> io::Result<File> {
    if name.contains('/') {
        return Err(ErrorKind::NotFound.into());
    }
    galatea_regular_files::open_for_writing(&folder.join(name))
}

fn not_registered(name: &str, reason: &str) -> Error {
    Error::invalid_arg(format!("failed to register shared memory region '{name}': {reason}"))
}

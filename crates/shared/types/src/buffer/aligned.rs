//! Host memory that is aligned for compute libraries.

use std::{
    collections::TryReserveError,
    io::{self, ErrorKind},
};

use bytes::{BufMut, Bytes};

use super::Buffer;

/// The alignment that compute libraries prefer: a cache line, and the widest vector register.
pub const BUFFER_ALIGNMENT: usize = 64;

/// A growable block whose data starts on [`BUFFER_ALIGNMENT`]. It holds joined batches and decoded JSON.
///
/// The alignment holds while the content fits the requested capacity. The block may grow beyond that; [`AlignedBlock::freeze`]
/// then restores the alignment with one copy.
pub struct AlignedBlock {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBlock {
    /// Makes an empty block with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity + BUFFER_ALIGNMENT);
        let start = padding_of(bytes.as_ptr());
        bytes.resize(start, 0);
        Self { bytes, start }
    }

    /// Makes an empty block with room for `capacity` bytes, or fails if there is no memory: for sizes that clients choose.
    pub fn try_with_capacity(capacity: usize) -> Result<Self, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(capacity.saturating_add(BUFFER_ALIGNMENT))?;
        let start = padding_of(bytes.as_ptr());
        bytes.resize(start, 0);
        Ok(Self { bytes, start })
    }

    /// Makes room for `additional` bytes more, or fails if there is no memory. The block grows geometrically.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(additional)
    }

    /// Frees the unused room if it is larger than the used part.
    pub fn shrink_if_sparse(&mut self) {
        if self.bytes.capacity() / 2 > self.bytes.len() + BUFFER_ALIGNMENT {
            self.bytes.shrink_to_fit();
        }
    }

    /// Appends `data`.
    pub fn extend_from_slice(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns whether there are no bytes yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `count` zero bytes.
    pub fn extend_zeroed(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    /// Returns room for at most `most` bytes behind the content, to read into. There is less when the capacity is smaller. When
    /// the block is full it grows, and there is some room.
    pub fn spare(&mut self, most: usize) -> impl BufMut {
        (&mut self.bytes).limit(most)
    }

    /// Appends `count` bytes that `read` puts behind the content of a vector, whose spare room need not be zeroed for that. It
    /// is called again while bytes are missing, with the number of those that it has given; bytes beyond `count` are dropped.
    ///
    /// # Errors
    /// The error of `read`; `UnexpectedEof` once `read` adds nothing.
    pub fn append_read(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Vec<u8>, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.bytes.len();
        self.bytes.reserve(count);
        while self.bytes.len() - start < count {
            let before = self.bytes.len();
            match read(&mut self.bytes, before - start) {
                Ok(()) if self.bytes.len() <= before => {
                    self.bytes.truncate(before);
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        self.bytes.truncate(start + count);
        Ok(())
    }

    /// Returns the bytes so far, to be overwritten.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Seals the block. Copies nothing unless it outgrew its capacity.
    pub fn freeze(self) -> Buffer {
        Buffer::Host(self.into_bytes())
    }

    /// Seals the block as [`AlignedBlock::freeze`] does, for callers that need host memory.
    pub fn into_bytes(self) -> Bytes {
        let bytes = self.seal();
        // Growth may have moved the block.
        if bytes.as_ptr().addr().is_multiple_of(BUFFER_ALIGNMENT) { bytes } else { copy(&bytes) }
    }

    fn seal(self) -> Bytes {
        Bytes::from(self.bytes).slice(self.start..)
    }
}

impl<'a> Extend<&'a u8> for AlignedBlock {
    fn extend<I: IntoIterator<Item = &'a u8>>(&mut self, bytes: I) {
        self.bytes.extend(bytes);
    }
}

fn padding_of(ptr: *const u8) -> usize {
    ptr.addr().next_multiple_of(BUFFER_ALIGNMENT) - ptr.addr()
}

/// Returns a copy of `bytes` that starts on [`BUFFER_ALIGNMENT`].
pub(super) fn copy(bytes: &[u8]) -> Bytes {
    let mut block = AlignedBlock::with_capacity(bytes.len());
    block.extend_from_slice(bytes);
    block.seal()
}

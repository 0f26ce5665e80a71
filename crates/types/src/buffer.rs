use std::{fmt, ops::Deref};

use bytes::Bytes;

/// Alignment the compute libraries like best: a cache line, and the widest vector register.
pub const BUFFER_ALIGNMENT: usize = 64;

/// Reference-counted, immutable bytes of a tensor: a slice of a network body, an aligned block, or memory
/// a runtime library owns. Cloning and slicing copy nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Buffer(Bytes);

impl Buffer {
    /// Memory that stays with its owner (a runtime's output tensor, a mapped file) until the last clone goes.
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self(Bytes::from_owner(owner))
    }

    /// Part of this buffer, sharing its memory. `None` when the range lies outside.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Option<Self> {
        (range.start <= range.end && range.end <= self.0.len()).then(|| Self(self.0.slice(range)))
    }

    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    pub fn is_aligned_to(&self, alignment: usize) -> bool {
        self.0.as_ptr().addr().is_multiple_of(alignment)
    }

    /// This buffer if it already starts on `alignment`, else a copy that does.
    pub fn aligned(&self, alignment: usize) -> Self {
        if self.is_aligned_to(alignment) {
            return self.clone();
        }
        let mut block = AlignedBlock::with_capacity(self.len());
        block.extend_from_slice(self);
        block.freeze()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Bytes> for Buffer {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::from(bytes))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.0.len())
    }
}

/// A growable block whose data starts on [`BUFFER_ALIGNMENT`]. Where joined batches and decoded JSON land.
///
/// The alignment holds while the content fits the capacity asked for; growing past it is allowed, and
/// [`AlignedBlock::freeze`] then repairs the alignment with one copy.
pub struct AlignedBlock {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBlock {
    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity + BUFFER_ALIGNMENT);
        let start = padding_of(bytes.as_ptr());
        bytes.resize(start, 0);
        Self { bytes, start }
    }

    pub fn extend_from_slice(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `count` zero bytes.
    pub fn extend_zeroed(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Seals the block. Costs nothing unless it outgrew its capacity.
    pub fn freeze(self) -> Buffer {
        let start = self.start;
        let buffer = Buffer(Bytes::from(self.bytes));
        let length = buffer.len();
        let data = Buffer(buffer.0.slice(start..length));
        // Bytes::from may reallocate to drop spare capacity, and growth may have moved the block.
        data.aligned(BUFFER_ALIGNMENT)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned() {
        for n in [0, 1, 63, 64, 65, 4096, 100_001] {
            let mut block = AlignedBlock::with_capacity(n);
            block.extend_from_slice(&vec![7; n]);
            let buffer = block.freeze();
            assert_eq!(buffer.len(), n);
            assert!(n == 0 || buffer.is_aligned_to(BUFFER_ALIGNMENT), "{n}");
        }
    }

    #[test]
    fn a_block_that_outgrows_its_capacity_is_aligned_all_the_same() {
        let mut block = AlignedBlock::with_capacity(3);
        block.extend_from_slice(&[1; 1000]);
        let buffer = block.freeze();
        assert!(buffer.is_aligned_to(BUFFER_ALIGNMENT));
        assert_eq!(&buffer[..], &[1; 1000]);
    }

    #[test]
    fn misaligned_slices_are_copied_aligned_ones_are_not() {
        let mut block = AlignedBlock::with_capacity(128);
        block.extend_from_slice(&[9; 128]);
        let whole = block.freeze();
        assert_eq!(whole.aligned(64).as_ptr(), whole.as_ptr());
        let odd = whole.slice(1..100).expect("in range");
        assert!(odd.aligned(8).is_aligned_to(8));
        assert_eq!(&odd.aligned(8)[..], &odd[..]);
        assert!(whole.slice(100..129).is_none());
    }
}

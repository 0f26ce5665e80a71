//! Tensors that stay in the memory of a runtime library, as buffers that need no copy.

use std::{ptr::NonNull, slice};

use galatea_types::Buffer;

/// Makes a buffer over memory that belongs to `owner`, an object of a library. The owner is dropped with the last part of
/// the buffer, on any thread.
///
/// # Safety
/// The `byte_size` bytes at `data` must stay readable as long as `owner` lives, even if moved. Nobody may write to them.
pub unsafe fn buffer_over(
    owner: impl Send + 'static,
    data: NonNull<u8>,
    byte_size: usize,
) -> Buffer {
    Buffer::from_owner(LibraryMemory { _owner: owner, data, byte_size })
}

struct LibraryMemory<O> {
    _owner: O,
    data: NonNull<u8>,
    byte_size: usize,
}

// SAFETY: the memory belongs to the owner, which may be sent, and is only read.
unsafe impl<O: Send> Send for LibraryMemory<O> {}

impl<O> AsRef<[u8]> for LibraryMemory<O> {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the caller of `buffer_over` has promised it.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.byte_size) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_owner_lives_as_long_as_any_slice_of_its_buffer() {
        let bytes = Arc::new([1_u8, 2, 3]);
        let data = NonNull::from(&bytes[0]);
        // SAFETY: the block is kept by the owner, and nobody writes to it.
        let buffer = unsafe { buffer_over(bytes.clone(), data, 3) };
        let part = buffer.slice(1..3).expect("in range");
        drop(buffer);
        assert_eq!(part.host(), Ok(&[2_u8, 3][..]));
        assert_eq!(Arc::strong_count(&bytes), 2);
        drop(part);
        assert_eq!(Arc::strong_count(&bytes), 1);
    }
}

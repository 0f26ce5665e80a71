//! A reader with an allowance, so that every part of an archive has a limit: the library reads long names and extended
//! headers into memory before anybody sees them.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// Reads bytes within the allowance, then fails. The caller raises the allowance for each entry.
pub(super) struct BoundedReader<R> {
    pub reader: R,
    /// Bytes that may still be read. 0: the reader stopped because of it.
    pub allowance: Rc<Cell<u64>>,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("it is longer than it may be"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.allowance.set(left.saturating_sub(read as u64));
        Ok(read)
    }
}

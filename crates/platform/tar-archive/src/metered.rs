//! A reader that gives out only so many bytes, so that no part of an archive is read without bound: the library reads
//! long names and extended headers into memory before anybody sees them.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// Bytes that may still be read: shared by the reader and by who raises it from entry to entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowance(Rc<Cell<u64>>);

impl Allowance {
    pub fn set(&self, bytes: u64) {
        self.0.set(bytes);
    }

    /// The reader stopped because of it.
    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// Reads from `R` what the allowance permits; then fails.
pub(super) struct Metered<R> {
    reader: R,
    allowance: Allowance,
}

impl<R> Metered<R> {
    pub fn new(reader: R, allowance: Allowance) -> Self {
        Self { reader, allowance }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.0.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("it is longer than it may be"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.allowance.0.set(left.saturating_sub(read as u64));
        Ok(read)
    }
}

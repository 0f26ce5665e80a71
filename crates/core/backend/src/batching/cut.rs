//! Cuts the elements of a tensor into consecutive parts without a copy.

use galatea_types::{Buffer, DataType, byte_strings};

/// The position up to which a tensor has been cut.
pub(super) struct CutPosition<'a> {
    data_type: DataType,
    data: &'a Buffer,
    start: usize,
}

impl<'a> CutPosition<'a> {
    pub fn of(data_type: DataType, data: &'a Buffer) -> Self {
        Self { data_type, data, start: 0 }
    }

    /// Returns the next `count` elements; `None` if fewer are left.
    pub fn next(&mut self, count: usize) -> Option<Buffer> {
        let length = match self.data_type.byte_size() {
            Some(bytes) => count.checked_mul(bytes)?,
            None => byte_strings::size_of_first(self.data.host().ok()?.get(self.start..)?, count)?,
        };
        let end = self.start.checked_add(length)?;
        let part = self.data.slice(self.start..end)?;
        self.start = end;
        Some(part)
    }
}

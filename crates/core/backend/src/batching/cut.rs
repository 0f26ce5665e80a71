//! Cutting the elements of a tensor into parts, one behind the other, without a copy.

use galatea_types::{Buffer, DataType, byte_strings};

/// What has been cut off so far.
pub(super) struct CutPosition<'a> {
    data_type: DataType,
    data: &'a Buffer,
    start: usize,
}

impl<'a> CutPosition<'a> {
    pub fn of(data_type: DataType, data: &'a Buffer) -> Self {
        Self { data_type, data, start: 0 }
    }

    /// The next `count` elements; `None` where there are not as many.
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

//! Memory that a client shares with the server: where the data of an input lies, and where that of an output goes.

use std::{fmt, ptr, sync::Arc};

use crate::{Buffer, Memory, Result};

/// A registered region. Offsets and sizes are in bytes, as the client gave them: an implementation checks them.
///
/// Its bytes are never lent as `&mut [u8]`. Two requests may name the same part of a region, and a model may write an
/// output where its own inputs lie, so that such a reference would not be the only one. What is written comes from
/// memory of the server.
pub trait Region: fmt::Debug + Send + Sync {
    /// Where its bytes lie.
    fn memory(&self) -> Memory;

    /// The `byte_size` bytes from `offset` on, without a copy where the memory allows it. They stay readable as long as
    /// the buffer lives, even when the region is unregistered.
    ///
    /// # Errors
    /// Those bytes are not all in the region.
    fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer>;

    /// Writes `data` to the region from `offset` on.
    ///
    /// # Errors
    /// It does not fit there, or cannot be copied.
    fn write(&self, offset: u64, data: &Buffer) -> Result<()>;
}

/// A part of a region that a tensor lies in.
#[derive(Clone, Debug)]
pub struct RegionSpan {
    /// The whole.
    pub region: Arc<dyn Region>,
    /// Where the tensor starts.
    pub offset: u64,
    /// What it may take.
    pub byte_size: u64,
}

impl RegionSpan {
    /// All its bytes.
    ///
    /// # Errors
    /// Those of [`Region::read`].
    pub fn read(&self) -> Result<Buffer> {
        self.region.read(self.offset, self.byte_size)
    }

    /// Whether a tensor of `byte_size` bytes may be written there.
    pub fn has_room_for(&self, byte_size: usize) -> bool {
        byte_size as u64 <= self.byte_size
    }

    /// Writes `data`, for which there is room, to the start of the span, unless it lies there already. A region whose
    /// `read` copies cannot tell, and is written again.
    ///
    /// # Errors
    /// Those of [`Region::write`].
    pub fn write(&self, data: &Buffer) -> Result<()> {
        if self.holds(data) { Ok(()) } else { self.region.write(self.offset, data) }
    }

    /// Writes `data`, for which there is room, to the start of the span: the same bytes as they lie there then.
    ///
    /// # Errors
    /// Those of [`Region::write`] and [`Region::read`].
    pub fn place(&self, data: &Buffer) -> Result<Buffer> {
        self.region.write(self.offset, data)?;
        self.region.read(self.offset, data.len() as u64)
    }

    fn holds(&self, data: &Buffer) -> bool {
        let there = || self.region.read(self.offset, data.len() as u64);
        self.region.memory() == data.memory() && there().is_ok_and(|b| b.is_same_memory(data))
    }
}

/// The same part of the same region.
impl PartialEq for RegionSpan {
    fn eq(&self, other: &Self) -> bool {
        ptr::addr_eq(Arc::as_ptr(&self.region), Arc::as_ptr(&other.region))
            && (self.offset, self.byte_size) == (other.offset, other.byte_size)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Error, LockExt};

    /// 8 bytes, read without a copy or with one.
    #[derive(Debug)]
    struct Bytes8 {
        content: Mutex<Buffer>,
        is_copied: bool,
        writes: Mutex<usize>,
    }

    impl Region for Bytes8 {
        fn memory(&self) -> Memory {
            Memory::Host
        }

        fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer> {
            let (start, end) = (offset as usize, (offset + byte_size) as usize);
            let content = self.content.lock_unpoisoned().slice(start..end);
            let content = content.ok_or_else(|| Error::invalid_arg("out of range"))?;
            Ok(if self.is_copied { content.host()?.to_vec().into() } else { content })
        }

        fn write(&self, offset: u64, data: &Buffer) -> Result<()> {
            *self.writes.lock_unpoisoned() += 1;
            self.read(offset, data.len() as u64)?;
            let mut content = self.content.lock_unpoisoned();
            let mut bytes = content.host()?.to_vec();
            bytes[offset as usize..][..data.len()].copy_from_slice(data.host()?);
            *content = bytes.into();
            Ok(())
        }
    }

    fn span(offset: u64, byte_size: u64, is_copied: bool) -> (RegionSpan, Arc<Bytes8>) {
        let content = Mutex::new(vec![0; 8].into());
        let region = Arc::new(Bytes8 { content, is_copied, writes: Mutex::default() });
        (RegionSpan { region: region.clone(), offset, byte_size }, region)
    }

    #[test]
    fn what_lies_in_its_span_is_not_written_again() {
        for (is_copied, writes) in [(false, 1), (true, 2)] {
            let (span, region) = span(2, 4, is_copied);
            let placed = span.place(&vec![1, 2, 3].into()).expect("in range");
            assert_eq!(placed, Buffer::from(vec![1, 2, 3]));
            span.write(&placed).expect("in range");
            assert_eq!(*region.writes.lock_unpoisoned(), writes, "copied: {is_copied}");
            assert_eq!(span.read().expect("in range"), Buffer::from(vec![1, 2, 3, 0]));
        }
    }

    #[test]
    fn bytes_that_are_only_equal_or_lie_elsewhere_are_written() {
        let (span, region) = span(2, 4, false);
        span.write(&vec![0; 4].into()).expect("in range");
        let elsewhere = region.read(0, 4).expect("in range");
        span.write(&elsewhere).expect("in range");
        assert_eq!(*region.writes.lock_unpoisoned(), 2);
    }

    #[test]
    fn a_span_outside_its_region_is_refused_by_the_region() {
        let (span, region) = span(6, 4, false);
        assert!(span.has_room_for(4) && !span.has_room_for(5));
        let data = Buffer::from(vec![1; 4]);
        assert!(span.write(&data).is_err() && span.place(&data).is_err() && span.read().is_err());
        assert_eq!(*region.content.lock_unpoisoned(), Buffer::from(vec![0; 8]));
    }

    #[test]
    fn spans_are_equal_in_the_same_region_only() {
        let (first, _) = span(0, 4, false);
        assert_eq!(first, first.clone());
        assert_ne!(first, RegionSpan { offset: 1, ..first.clone() });
        assert_ne!(first, span(0, 4, false).0);
    }
}

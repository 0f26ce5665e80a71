//! Shared memory that clients register: requests read inputs from it and have outputs written to it.

use std::{fmt, sync::Arc};

use crate::{Buffer, Error, OutputAllocator, Result};

/// A registered region. Offsets and sizes are in bytes, as a client gave them.
///
/// Clients may change its bytes and its length at any time. So an implementation lends none of it: reads return a copy, and
/// copying checks the length again.
pub trait Region: fmt::Debug + Send + Sync {
    /// Checks that the `byte_size` bytes from `offset` on are part of the region.
    ///
    /// # Errors
    /// `InvalidArg` when they are not.
    fn check(&self, offset: u64, byte_size: u64) -> Result<()>;

    /// Returns a copy of the `byte_size` bytes from `offset` on, which were checked.
    ///
    /// # Errors
    /// The client has shortened the memory, or the server has no room for the copy.
    fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer>;

    /// Writes `data` to the region from `offset` on; the room was checked.
    ///
    /// # Errors
    /// The client has shortened the memory, or `data` cannot be copied there.
    fn write(&self, offset: u64, data: &Buffer) -> Result<()>;
}

/// Finds registered regions by their names.
pub trait Regions: Send + Sync {
    /// Returns the region called `name`.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn find(&self, name: &str) -> Result<Arc<dyn Region>>;
}

/// The part of a region that holds a tensor.
#[derive(Clone, Debug)]
pub struct RegionSpan {
    region: Arc<dyn Region>,
    offset: u64,
    byte_size: u64,
}

impl RegionSpan {
    /// Makes the span of the `byte_size` bytes from `offset` on.
    ///
    /// # Errors
    /// The errors of [`Region::check`].
    pub fn new(region: Arc<dyn Region>, offset: u64, byte_size: u64) -> Result<Self> {
        region.check(offset, byte_size)?;
        Ok(Self { region, offset, byte_size })
    }

    /// Returns a copy of its bytes.
    ///
    /// # Errors
    /// The errors of [`Region::read`].
    pub fn read(&self) -> Result<Buffer> {
        self.region.read(self.offset, self.byte_size)
    }
}

/// Takes one output. The memory of a span is never lent: a model writes elsewhere, and the result is copied to the span.
impl OutputAllocator for RegionSpan {
    /// Writes `data` to the start of the span. The response has no copy of it.
    fn place(&self, output: &str, data: &Buffer) -> Result<Buffer> {
        let (needed, available) = (data.len(), self.byte_size);
        if needed as u64 > available {
            return Err(Error::internal(format!(
                "shared memory size specified with the request for output '{output}' ({available} bytes) should be at \
                 least {needed} bytes to hold the results"
            )));
        }
        self.region.write(self.offset, data)?;
        Ok(Buffer::default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Code, LockExt};

    /// 8 bytes.
    #[derive(Debug, Default)]
    struct Bytes8(Mutex<[u8; 8]>);

    impl Region for Bytes8 {
        fn check(&self, offset: u64, byte_size: u64) -> Result<()> {
            let is_inside = offset.checked_add(byte_size).is_some_and(|end| end <= 8);
            is_inside.then_some(()).ok_or_else(|| Error::invalid_arg("out of range"))
        }

        fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer> {
            Ok(self.0.lock_unpoisoned()[offset as usize..][..byte_size as usize].to_vec().into())
        }

        fn write(&self, offset: u64, data: &Buffer) -> Result<()> {
            let mut content = self.0.lock_unpoisoned();
            content[offset as usize..][..data.len()].copy_from_slice(data.host()?);
            Ok(())
        }
    }

    #[test]
    fn a_span_is_written_up_to_the_data_and_the_rest_is_unchanged() {
        let region = Arc::new(Bytes8::default());
        let span = RegionSpan::new(region.clone(), 2, 4).expect("in range");
        let rest = span.place("OUT", &vec![1, 2, 3].into()).expect("it fits");
        assert!(rest.is_empty());
        assert_eq!(span.read().expect("in range"), Buffer::from(vec![1, 2, 3, 0]));
        let error = span.place("OUT", &vec![4; 5].into()).expect_err("too large");
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(
            error.message(),
            "shared memory size specified with the request for output 'OUT' (4 bytes) should be at least 5 bytes to \
             hold the results"
        );
        assert_eq!(*region.0.lock_unpoisoned(), [0, 0, 1, 2, 3, 0, 0, 0]);
        assert!(span.allocate("OUT", 3, crate::Memory::Host).expect("nothing fails").is_none());
    }

    #[test]
    fn a_span_outside_its_region_cannot_be_created() {
        for (offset, byte_size) in [(6, 3), (9, 0), (u64::MAX, 2)] {
            assert!(RegionSpan::new(Arc::new(Bytes8::default()), offset, byte_size).is_err());
        }
    }
}

//! Shared memory that clients register: requests read inputs from it and have outputs written to it.

use std::{fmt, sync::Arc};

use crate::{Buffer, Error, InferRequest, OutputAllocator, Result};

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

    /// Returns whether the memory is that of a device. Copying waits for the device then, for any time.
    fn is_on_device(&self) -> bool {
        false
    }

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

    /// Returns the work of copying `byte_size` bytes of the span, as the number of bytes that are copied in host memory in that
    /// time. It has no bound for memory of a device.
    pub fn copying_work(&self, byte_size: usize) -> usize {
        if self.region.is_on_device() { usize::MAX } else { byte_size }
    }

    /// Checks that an output of `needed` bytes fits the span.
    ///
    /// # Errors
    /// `Internal` if it does not.
    pub fn check_fits(&self, output: &str, needed: usize) -> Result<()> {
        let available = self.byte_size;
        if needed as u64 <= available {
            return Ok(());
        }
        Err(Error::internal(format!(
            "shared memory size specified with the request for output '{output}' ({available} bytes) should be at least \
             {needed} bytes to hold the results"
        )))
    }
}

/// A decoded request. The inputs that its client placed in regions have no data yet.
///
/// Reading is a step of its own because it copies many bytes: a front end chooses the thread for it.
#[derive(Debug)]
pub struct UnreadRequest {
    request: InferRequest,
    unread: Vec<UnreadInput>,
}

/// An input whose data is not read yet.
#[derive(Debug)]
pub struct UnreadInput {
    /// Its index among the inputs of its request.
    pub index: usize,
    /// The place of its data.
    pub span: RegionSpan,
}

impl UnreadRequest {
    /// Makes a request with these inputs unread.
    pub fn new(request: InferRequest, unread: Vec<UnreadInput>) -> Self {
        Self { request, unread }
    }

    /// Returns the request, as far as it is known.
    pub fn request(&self) -> &InferRequest {
        &self.request
    }

    /// Returns the request, as far as it is known.
    pub fn request_mut(&mut self) -> &mut InferRequest {
        &mut self.request
    }

    /// Returns the bytes that are still to be read.
    pub fn unread_bytes(&self) -> usize {
        self.sum_of_unread(|_, bytes| bytes)
    }

    /// Returns the work of reading them, in the unit of [`RegionSpan::copying_work`].
    pub fn reading_work(&self) -> usize {
        self.sum_of_unread(RegionSpan::copying_work)
    }

    fn sum_of_unread(&self, of: fn(&RegionSpan, usize) -> usize) -> usize {
        let of_input = |UnreadInput { span, .. }: &UnreadInput| {
            of(span, usize::try_from(span.byte_size).unwrap_or(usize::MAX))
        };
        self.unread.iter().map(of_input).fold(0, usize::saturating_add)
    }

    /// Reads the inputs that are unread.
    ///
    /// # Errors
    /// The errors of [`Region::read`].
    pub fn read_regions(&mut self) -> Result<()> {
        for UnreadInput { index, span } in self.unread.drain(..) {
            if let Some(tensor) = self.request.inputs.get_mut(index) {
                tensor.data = span.read()?;
            }
        }
        Ok(())
    }

    /// Returns the whole request.
    ///
    /// # Errors
    /// The errors of [`Region::read`].
    pub fn read(mut self) -> Result<InferRequest> {
        self.read_regions()?;
        Ok(self.request)
    }
}

/// A request without inputs in regions.
impl From<InferRequest> for UnreadRequest {
    fn from(request: InferRequest) -> Self {
        Self::new(request, Vec::new())
    }
}

/// Takes one output. The memory of a span is never lent: a model writes elsewhere, and the result is copied to the span.
impl OutputAllocator for RegionSpan {
    /// Writes `data` to the start of the span. The response has no copy of it.
    fn place(&self, output: &str, data: &Buffer) -> Result<Buffer> {
        self.check_fits(output, data.len())?;
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
    struct Bytes8 {
        content: Mutex<[u8; 8]>,
        is_on_device: bool,
    }

    impl Region for Bytes8 {
        fn is_on_device(&self) -> bool {
            self.is_on_device
        }

        fn check(&self, offset: u64, byte_size: u64) -> Result<()> {
            let is_inside = offset.checked_add(byte_size).is_some_and(|end| end <= 8);
            is_inside.then_some(()).ok_or_else(|| Error::invalid_arg("out of range"))
        }

        fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer> {
            Ok(self.content.lock_unpoisoned()[offset as usize..][..byte_size as usize]
                .to_vec()
                .into())
        }

        fn write(&self, offset: u64, data: &Buffer) -> Result<()> {
            let mut content = self.content.lock_unpoisoned();
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
        assert_eq!(*region.content.lock_unpoisoned(), [0, 0, 1, 2, 3, 0, 0, 0]);
        assert!(span.allocate("OUT", 3, crate::Memory::Host).expect("nothing fails").is_none());
    }

    #[test]
    fn inputs_in_regions_are_read_later_and_once() {
        let region = Arc::new(Bytes8::default());
        region.write(0, &vec![1, 2, 3, 4, 5, 6, 7, 8].into()).expect("in range");
        let mut request = InferRequest::new("m");
        for name in ["A", "B"] {
            request.inputs.push(crate::Tensor::new(name, crate::DataType::Uint8, [2], vec![0; 2]));
        }
        assert_eq!(UnreadRequest::from(request.clone()).unread_bytes(), 0);
        let span = RegionSpan::new(region, 2, 3).expect("in range");
        let mut unread = UnreadRequest::new(request, vec![UnreadInput { index: 1, span }]);
        assert_eq!(unread.unread_bytes(), 3);
        unread.read_regions().expect("in range");
        assert_eq!(unread.unread_bytes(), 0);
        let request = unread.read().expect("nothing is left");
        assert_eq!(request.inputs[0].data, vec![0, 0].into());
        assert_eq!(request.inputs[1].data, vec![3, 4, 5].into());
    }

    #[test]
    fn reading_from_a_device_is_work_without_bound() {
        let work = |is_on_device| {
            let region = Arc::new(Bytes8 { is_on_device, ..Bytes8::default() });
            let span = RegionSpan::new(region, 2, 3).expect("in range");
            let unread = vec![UnreadInput { index: 0, span }];
            let request = UnreadRequest::new(InferRequest::new("m"), unread);
            (request.unread_bytes(), request.reading_work())
        };
        assert_eq!(work(false), (3, 3));
        assert_eq!(work(true), (3, usize::MAX));
    }

    #[test]
    fn a_span_outside_its_region_cannot_be_created() {
        for (offset, byte_size) in [(6, 3), (9, 0), (u64::MAX, 2)] {
            assert!(RegionSpan::new(Arc::new(Bytes8::default()), offset, byte_size).is_err());
        }
    }
}

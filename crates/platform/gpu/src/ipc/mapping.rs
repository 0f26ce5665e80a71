//! An allocation of another process, opened in this one.

use std::{ffi::c_void, fmt, sync::Arc};

use super::{
    IpcAllocation, IpcHandle, Library,
    context::{Context, log_failure},
    functions::{CuDevicePtr, CuIpcMemHandle, LAZY_PEER_ACCESS},
};
use crate::error::GpuError;

/// An open handle. It is closed when this is dropped, before its context is given back.
pub(super) struct Mapping {
    context: Context,
    address: CuDevicePtr,
    /// Bytes from `address` to the end of the allocation.
    byte_size: u64,
}

impl Mapping {
    pub fn open(library: Arc<Library>, gpu: u32, handle: IpcHandle) -> Result<Self, GpuError> {
        let context = Context::of_gpu(library, gpu)?;
        let handle = CuIpcMemHandle::of(handle);
        let mut address = 0;
        let entered = context.enter()?;
        let open = context.library().functions.open_handle;
        // SAFETY: the out pointer is valid, and a context is current; the driver checks the content of the handle.
        let result = unsafe { open(&mut address, handle, LAZY_PEER_ACCESS) };
        context.library().driver.check("cuIpcOpenMemHandle", result)?;
        drop(entered);
        let mut mapping = Self { context, address, byte_size: 0 };
        mapping.byte_size = mapping.query_byte_size()?;
        Ok(mapping)
    }

    fn query_byte_size(&self) -> Result<u64, GpuError> {
        let (mut base, mut length) = (0, 0);
        let _entered = self.context.enter()?;
        let query = self.context.library().functions.address_range;
        // SAFETY: the out pointers are valid, and a context is current.
        let result = unsafe { query(&mut base, &mut length, self.address) };
        self.context.library().driver.check("cuMemGetAddressRange", result)?;
        // A handle may be of memory in the middle of an allocation.
        let before = self.address.saturating_sub(base);
        Ok((length as u64).saturating_sub(before))
    }

    /// Returns the address of a range of `length` bytes.
    fn address_of(&self, offset: u64, length: usize) -> Result<CuDevicePtr, GpuError> {
        match offset.checked_add(length as u64) {
            Some(end) if end <= self.byte_size => Ok(self.address + offset),
            _ => Err(GpuError::OutOfRange(offset, length, self.byte_size)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let close = || {
            let _entered = self.context.enter()?;
            // SAFETY: the address came from the open handle. All copies have ended: each borrows `self` until then.
            let result = unsafe { (self.context.library().functions.close_handle)(self.address) };
            self.context.library().driver.check("cuIpcCloseMemHandle", result)
        };
        log_failure(close());
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.byte_size)
    }
}

impl IpcAllocation for Mapping {
    fn byte_size(&self) -> u64 {
        self.byte_size
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), GpuError> {
        let address = self.address_of(offset, target.len())?;
        let _entered = self.context.enter()?;
        let copy = self.context.library().functions.copy_to_host;
        let place = target.as_mut_ptr().cast::<c_void>();
        // SAFETY: both ranges are valid: `target` by its type, the other one was compared with the allocation. The driver
        // copies to memory that it has not pinned before the call returns, and what is still under way is awaited.
        let result = unsafe { copy(place, address, target.len(), self.context.stream()) };
        let ended = self.context.finish_copies();
        self.context.library().driver.check("cuMemcpyDtoHAsync", result).and(ended)
    }

    fn write(&self, offset: u64, source: &[u8]) -> Result<(), GpuError> {
        let address = self.address_of(offset, source.len())?;
        let _entered = self.context.enter()?;
        let copy = self.context.library().functions.copy_to_device;
        let place = source.as_ptr().cast::<c_void>();
        // SAFETY: as in `read`. Another process may see the bytes only after the copy, which is why that is awaited.
        let result = unsafe { copy(address, place, source.len(), self.context.stream()) };
        let ended = self.context.finish_copies();
        self.context.library().driver.check("cuMemcpyHtoDAsync", result).and(ended)
    }
}

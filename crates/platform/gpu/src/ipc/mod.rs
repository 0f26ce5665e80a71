//! Memory of GPUs that other processes have allocated and share by handles, as CUDA's functions `cuIpc...` open it.

mod context;
mod functions;
mod mapping;
mod openings;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use self::{functions::Functions, mapping::Mapping, openings::Openings};
use crate::{driver::Driver, error::GpuError};

/// A handle by which a process shares an allocation of a GPU: CUDA's `cudaIpcMemHandle_t`. Only the driver knows its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpcHandle([u8; Self::LENGTH]);

impl IpcHandle {
    /// The length of a handle in bytes.
    pub const LENGTH: usize = 64;

    /// Makes the handle of these bytes; `None` for another length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// The content of a handle opens memory, so it is in no log.
impl fmt::Debug for IpcHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IpcHandle")
    }
}

/// Opens allocations of other processes.
pub trait IpcMemory: fmt::Debug + Send + Sync {
    /// Opens the allocation behind `handle` for the GPU with the number `device`. All who open the same one share it; it is
    /// closed when the last of them drops it.
    ///
    /// # Errors
    /// There is no such GPU, the driver refuses the handle, or it has not answered another thread in time.
    fn open(&self, device: i64, handle: IpcHandle) -> Result<Arc<dyn IpcAllocation>, GpuError>;
}

/// An opened allocation. Its owner may change the bytes at any time, so they are only copied.
pub trait IpcAllocation: fmt::Debug + Send + Sync {
    /// Returns the number of bytes, as the driver knows it.
    fn byte_size(&self) -> u64;

    /// Copies the bytes from `offset` on to `target`. Blocks until they are there.
    ///
    /// # Errors
    /// The range is not within the allocation, or the driver reports an error, which an earlier operation may have caused.
    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), GpuError>;

    /// Copies `source` to the bytes from `offset` on. Blocks until they are there.
    ///
    /// # Errors
    /// Those of [`IpcAllocation::read`].
    fn write(&self, offset: u64, source: &[u8]) -> Result<(), GpuError>;
}

/// The CUDA driver as a source of shared memory. Nothing is started, and no memory of a GPU is used, until an allocation is
/// opened.
pub struct CudaIpcMemory {
    library: Arc<Library>,
    openings: Arc<Openings>,
}

/// The functions of the driver.
struct Library {
    driver: Driver,
    functions: Functions,
}

impl CudaIpcMemory {
    /// Finds the driver; `None` if none is installed.
    ///
    /// # Errors
    /// When the installed driver lacks a function.
    pub fn find() -> Result<Option<Self>, GpuError> {
        let library = match Driver::open_library() {
            Ok(library) => library,
            Err(error) if error.is_missing_library() => return Ok(None),
            Err(error) => return Err(error),
        };
        let (driver, functions) = (Driver::of(&library)?, Functions::find(&library)?);
        Ok(Some(Self::of(Library { driver, functions })))
    }

    fn of(library: Library) -> Self {
        Self { library: Arc::new(library), openings: Arc::default() }
    }
}

impl fmt::Debug for CudaIpcMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CudaIpcMemory")
    }
}

impl IpcMemory for CudaIpcMemory {
    fn open(&self, device: i64, handle: IpcHandle) -> Result<Arc<dyn IpcAllocation>, GpuError> {
        let count = self.library.driver.count()?;
        let found = u32::try_from(device).ok().filter(|index| *index < count);
        let index = found.ok_or(GpuError::NoSuchDevice(device, count))?;
        let open = || Mapping::open(self.library.clone(), index, handle);
        self.openings.share((index, handle), open)
    }
}

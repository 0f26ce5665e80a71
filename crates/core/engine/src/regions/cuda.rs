//! A region in the memory of an NVIDIA GPU, read and written through the CUDA driver.

use std::sync::Arc;

use galatea_gpu::{GpuError, IpcAllocation, IpcHandle, IpcMemory};
use galatea_types::{Buffer, Error, MemoryBudget, Region, Result};

use super::bounds::Bounds;

/// A region of CUDA shared memory as a client describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaRegionDescription {
    /// The name used in requests.
    pub name: String,
    /// The number of the GPU, as the driver shows it to this server.
    pub device_id: i64,
    /// Number of bytes.
    pub byte_size: u64,
}

/// The beginning of an allocation of a client.
#[derive(Debug)]
pub(super) struct CudaRegion {
    pub description: CudaRegionDescription,
    allocation: Arc<dyn IpcAllocation>,
    memory: Arc<MemoryBudget>,
}

impl CudaRegion {
    /// Opens the allocation that the handle is of, and compares the size of the description with it.
    pub fn open(
        gpus: &dyn IpcMemory,
        description: CudaRegionDescription,
        handle: IpcHandle,
        memory: Arc<MemoryBudget>,
    ) -> Result<Self> {
        let CudaRegionDescription { name, device_id, byte_size } = &description;
        let allocation =
            gpus.open(*device_id, handle).map_err(|error| not_opened(&description, error))?;
        if *byte_size > allocation.byte_size() {
            let text = format!("failed to register shared memory region '{name}': invalid args");
            return Err(Error::invalid_arg(text));
        }
        Ok(Self { description, allocation, memory })
    }

    fn bounds(&self) -> Bounds<'_> {
        let CudaRegionDescription { name, byte_size, .. } = &self.description;
        Bounds { name, byte_size: *byte_size }
    }

    /// Returns the error of a transfer of `byte_size` bytes from `offset` on.
    fn failure(&self, action: &str, offset: u64, byte_size: usize, error: GpuError) -> Error {
        let name = &self.description.name;
        let text = format!(
            "Unable to {action} {byte_size} bytes at offset {offset} of CUDA shared memory region '{name}': {error}"
        );
        Error::internal(text).with_source(error)
    }
}

impl Region for CudaRegion {
    fn check(&self, offset: u64, byte_size: u64) -> Result<()> {
        self.bounds().check(offset, byte_size)
    }

    fn is_on_device(&self) -> bool {
        true
    }

    fn read(&self, offset: u64, byte_size: u64) -> Result<Buffer> {
        self.check(offset, byte_size)?;
        self.bounds().copy(&self.memory, byte_size, |block, size| {
            block.extend_zeroed(size);
            let read = self.allocation.read(offset, block.as_mut_slice());
            read.map_err(|error| self.failure("read", offset, size, error))
        })
    }

    fn write(&self, offset: u64, data: &Buffer) -> Result<()> {
        self.check(offset, data.len() as u64)?;
        let bytes = data.to_host()?;
        let written = self.allocation.write(offset, &bytes);
        written.map_err(|error| self.failure("write", offset, bytes.len(), error))
    }
}

/// Returns the error of a server without a CUDA driver. Triton answers so if it was built without CUDA.
pub(super) fn not_supported(name: &str) -> Error {
    Error::invalid_arg(format!(
        "failed to register CUDA shared memory region: '{name}', GPUs not supported"
    ))
}

/// Returns the error of a handle that no GPU accepts. Clients of Triton get no reason.
pub(super) fn not_accepted() -> Error {
    Error::invalid_arg("failed to register shared memory region: invalid args")
}

/// Logs the driver's reason, and returns the error for the client.
fn not_opened(description: &CudaRegionDescription, error: GpuError) -> Error {
    let CudaRegionDescription { name, .. } = description;
    log::warn!("CUDA shared memory region '{name}' cannot be opened: {error}");
    match error {
        GpuError::NoSuchDevice(device, count) if count > 0 => {
            let text = format!(
                "failed to register CUDA shared memory region '{name}': device_id {device} is no GPU of this server, which \
                 has {count}, numbered from 0"
            );
            Error::invalid_arg(text).with_source(error)
        }
        error => not_accepted().with_source(error),
    }
}

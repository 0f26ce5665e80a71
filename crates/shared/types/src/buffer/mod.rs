//! The bytes of a tensor, in host memory or in the memory of a device.

mod aligned;
mod device;
#[cfg(test)]
mod tests;

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;

pub use self::{
    aligned::{AlignedBlock, BUFFER_ALIGNMENT},
    device::{
        Device, DeviceAllocator, DeviceBlock, DeviceKind, DeviceMemory, Memory, NotInHostMemory,
    },
};
use crate::Result;

/// Reference-counted, immutable bytes of a tensor. Cloning and slicing copy nothing.
///
/// Only [`Buffer::host`] reads the bytes, and it fails for those of a device.
#[derive(Clone)]
pub enum Buffer {
    /// A slice of a network body, an aligned block, or memory a runtime library owns.
    Host(Bytes),
    /// Memory that only a library for the device can read.
    Device(Arc<dyn DeviceMemory>),
}

impl Buffer {
    /// Wraps memory that stays with its owner (a runtime's output tensor) until the last clone is dropped.
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::Host(Bytes::from_owner(owner))
    }

    /// Returns the memory that holds the bytes.
    pub fn memory(&self) -> Memory {
        match self {
            Self::Host(_) => Memory::Host,
            Self::Device(device) => Memory::Device(device.device()),
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.len(),
            Self::Device(device) => device.len(),
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes without a copy.
    ///
    /// # Errors
    /// [`NotInHostMemory`] for bytes in the memory of a device.
    pub fn host(&self) -> Result<&[u8], NotInHostMemory> {
        self.host_bytes().map(|bytes| &**bytes)
    }

    /// Returns the bytes as [`Buffer::host`] does, with their shared ownership.
    ///
    /// # Errors
    /// [`NotInHostMemory`] for bytes in the memory of a device.
    pub fn host_bytes(&self) -> Result<&Bytes, NotInHostMemory> {
        match self {
            Self::Host(bytes) => Ok(bytes),
            Self::Device(device) => Err(NotInHostMemory { device: device.device() }),
        }
    }

    /// Returns the bytes in host memory. Bytes of a device are copied to an aligned block; others stay where they are.
    ///
    /// # Errors
    /// The errors of [`DeviceMemory::copy_to_host`].
    pub fn to_host(&self) -> Result<Bytes> {
        match self {
            Self::Host(bytes) => Ok(bytes.clone()),
            Self::Device(device) => {
                let mut block = AlignedBlock::with_capacity(device.len());
                self.append_to(&mut block)?;
                Ok(block.into_bytes())
            }
        }
    }

    /// Appends a copy of these bytes to `block`, from any memory.
    ///
    /// # Errors
    /// The errors of [`DeviceMemory::copy_to_host`].
    pub fn append_to(&self, block: &mut AlignedBlock) -> Result<()> {
        match self {
            Self::Host(bytes) => block.extend_from_slice(bytes),
            Self::Device(device) => {
                let start = block.len();
                block.extend_zeroed(device.len());
                device.copy_to_host(block.as_mut_slice().get_mut(start..).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// Returns a part of this buffer, sharing its memory. `None` when the range is outside.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        match self {
            Self::Host(bytes) => Some(Self::Host(bytes.slice(range))),
            Self::Device(device) => Some(Self::Device(device.clone().slice(range))),
        }
    }

    /// Returns whether the address of the first byte is a multiple of `alignment`.
    pub fn is_aligned_to(&self, alignment: usize) -> bool {
        self.address().is_multiple_of(alignment)
    }

    /// Returns whether both are the same memory, not only equal bytes.
    pub fn is_same_memory(&self, other: &Self) -> bool {
        let place = |buffer: &Self| (buffer.memory(), buffer.address(), buffer.len());
        place(self) == place(other)
    }

    fn address(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.as_ptr().addr(),
            Self::Device(device) => device.address(),
        }
    }

    /// Returns the bytes if they start on `alignment` (at most [`BUFFER_ALIGNMENT`]), else a copy that does.
    ///
    /// # Errors
    /// [`NotInHostMemory`] for bytes in the memory of a device.
    pub fn aligned(&self, alignment: usize) -> Result<Bytes, NotInHostMemory> {
        let bytes = self.host_bytes()?;
        Ok(if self.is_aligned_to(alignment) { bytes.clone() } else { aligned::copy(bytes) })
    }
}

impl Default for Buffer {
    /// Returns no bytes, in host memory.
    fn default() -> Self {
        Self::Host(Bytes::new())
    }
}

/// Compares bytes in host memory, and places on a device.
impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host(a), Self::Host(b)) => a == b,
            (Self::Device(_), Self::Device(_)) => self.is_same_memory(other),
            _ => false,
        }
    }
}

impl Eq for Buffer {}

impl From<Bytes> for Buffer {
    fn from(bytes: Bytes) -> Self {
        Self::Host(bytes)
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Host(Bytes::from(bytes))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes in {})", self.len(), self.memory())
    }
}

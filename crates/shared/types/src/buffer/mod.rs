//! The bytes of a tensor, wherever they lie: in host memory, or in that of a device.

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
/// There is no way to read the bytes but [`Buffer::host`], which fails for those of a device.
#[derive(Clone)]
pub enum Buffer {
    /// A slice of a network body, an aligned block, or memory a runtime library owns.
    Host(Bytes),
    /// What only a library for the device can read.
    Device(Arc<dyn DeviceMemory>),
}

impl Buffer {
    /// Memory that stays with its owner (a runtime's output tensor) until the last clone goes.
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::Host(Bytes::from_owner(owner))
    }

    /// Where the bytes lie.
    pub fn memory(&self) -> Memory {
        match self {
            Self::Host(_) => Memory::Host,
            Self::Device(device) => Memory::Device(device.device()),
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.len(),
            Self::Device(device) => device.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, to be read where they lie.
    ///
    /// # Errors
    /// [`NotInHostMemory`] for bytes in the memory of a device.
    pub fn host(&self) -> Result<&[u8], NotInHostMemory> {
        self.host_bytes().map(|bytes| &**bytes)
    }

    /// As [`Buffer::host`], with the shared ownership of the bytes.
    ///
    /// # Errors
    /// [`NotInHostMemory`] for bytes in the memory of a device.
    pub fn host_bytes(&self) -> Result<&Bytes, NotInHostMemory> {
        match self {
            Self::Host(bytes) => Ok(bytes),
            Self::Device(device) => Err(NotInHostMemory { device: device.device() }),
        }
    }

    /// These bytes in host memory: copied from a device, aligned, to a block of their own, as they are otherwise.
    ///
    /// # Errors
    /// Those of [`DeviceMemory::copy_to_host`].
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

    /// Appends a copy of these bytes to `block`, wherever they lie.
    ///
    /// # Errors
    /// Those of [`DeviceMemory::copy_to_host`].
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

    /// Part of this buffer, sharing its memory. `None` when the range lies outside.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        match self {
            Self::Host(bytes) => Some(Self::Host(bytes.slice(range))),
            Self::Device(device) => Some(Self::Device(device.clone().slice(range))),
        }
    }

    /// Whether the first byte has an address that is a multiple of `alignment`.
    pub fn is_aligned_to(&self, alignment: usize) -> bool {
        self.address().is_multiple_of(alignment)
    }

    /// Whether these are the very bytes of `other`, not only equal ones.
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

    /// These bytes if they already start on `alignment`, at most [`BUFFER_ALIGNMENT`], else a copy that does.
    ///
    /// # Errors
    /// [`NotInHostMemory`] for bytes in the memory of a device.
    pub fn aligned(&self, alignment: usize) -> Result<Bytes, NotInHostMemory> {
        let bytes = self.host_bytes()?;
        Ok(if self.is_aligned_to(alignment) { bytes.clone() } else { aligned::copy(bytes) })
    }
}

impl Default for Buffer {
    /// No bytes, in host memory.
    fn default() -> Self {
        Self::Host(Bytes::new())
    }
}

/// Equal bytes in host memory; the same place on a device.
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

//! Memory that the host cannot read, as a buffer uses it.

use std::{fmt, ops::Range, sync::Arc};

use super::Buffer;
use crate::{Code, Error, Result};

/// A kind of accelerator with memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A CUDA GPU.
    Gpu,
}

/// A device of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind of the device.
    pub kind: DeviceKind,
    /// Its number among those of its kind, from 0.
    pub index: u32,
}

/// The memory that holds bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Memory of the host, which every thread of this process can read.
    #[default]
    Host,
    /// Memory of a device.
    Device(Device),
}

/// A range of a device's memory, kept until the last clone of its buffer goes.
pub trait DeviceMemory: fmt::Debug + Send + Sync {
    /// Returns the device whose memory it is.
    fn device(&self) -> Device;

    /// Returns the address of the first byte, as the device's library knows it.
    fn address(&self) -> usize;

    /// Returns the number of bytes.
    fn len(&self) -> usize;

    /// Returns whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a part of this range, sharing its memory. `range` is within it: [`Buffer::slice`](super::Buffer::slice) has
    /// checked that.
    fn slice(self: Arc<Self>, range: Range<usize>) -> Arc<dyn DeviceMemory>;

    /// Copies all bytes to `target`, which has the same length. Blocks until they are there.
    ///
    /// # Errors
    /// The error of the device's library.
    fn copy_to_host(&self, target: &mut [u8]) -> Result<()>;
}

/// Allocates memory of one device.
pub trait DeviceAllocator: fmt::Debug + Send + Sync {
    /// Returns the device whose memory it is.
    fn device(&self) -> Device;

    /// Allocates `byte_size` bytes, whose content is not defined.
    ///
    /// # Errors
    /// The error of the device's library; `Exhausted` when it has too little memory.
    fn allocate(&self, byte_size: usize) -> Result<Box<dyn DeviceBlock>>;
}

/// Memory of a device that only its owner knows, until it is sealed.
pub trait DeviceBlock: Send {
    /// Returns the address of the first byte, as the device's library knows it.
    fn address(&self) -> usize;

    /// Copies `data`, wherever it is, to the bytes from `offset` on. Blocks until they are there.
    ///
    /// # Errors
    /// The data does not fit there, or the device's library has failed.
    fn write(&mut self, offset: usize, data: &Buffer) -> Result<()>;

    /// Seals the block.
    fn freeze(self: Box<Self>) -> Arc<dyn DeviceMemory>;
}

/// The error of reading, on the host, bytes in the memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data lies in the memory of {device}, where the host cannot read it")]
pub struct NotInHostMemory {
    /// The device whose memory holds the bytes.
    pub device: Device,
}

impl From<NotInHostMemory> for Error {
    fn from(error: NotInHostMemory) -> Self {
        Error::new(Code::Unsupported, error.to_string())
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "GPU",
        })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.index)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host memory"),
            Self::Device(device) => write!(f, "the memory of {device}"),
        }
    }
}

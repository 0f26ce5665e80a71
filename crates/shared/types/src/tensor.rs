//! A named tensor.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use crate::{Buffer, DataType, Error, NotInHostMemory, Result, Shape};

/// A named tensor. `data` holds exactly `shape` elements of `data_type`, row-major, little-endian;
/// for [`DataType::Bytes`] each element is a `u32` length followed by its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// As the configuration has it.
    pub name: Arc<str>,
    /// Of every element.
    pub data_type: DataType,
    /// Outermost dimension first, the batch dimension included; nothing is left open.
    pub shape: Shape,
    /// The elements.
    pub data: Buffer,
}

impl Tensor {
    /// A tensor over `data`, which is not checked here.
    pub fn new(
        name: impl Into<Arc<str>>,
        data_type: DataType,
        shape: impl Into<Shape>,
        data: impl Into<Buffer>,
    ) -> Self {
        Self { name: name.into(), data_type, shape: shape.into(), data: data.into() }
    }

    /// The elements, to be read by the host.
    ///
    /// # Errors
    /// `Unsupported`, with the tensor's name, when they lie in the memory of a device.
    pub fn host(&self) -> Result<&[u8]> {
        self.data.host().map_err(|error| self.not_in_host_memory(error))
    }

    /// As [`Tensor::host`], with the shared ownership of the bytes.
    ///
    /// # Errors
    /// As [`Tensor::host`].
    pub fn host_bytes(&self) -> Result<&Bytes> {
        self.data.host_bytes().map_err(|error| self.not_in_host_memory(error))
    }

    /// The tensor with its elements in host memory: copied from a device, itself otherwise.
    ///
    /// # Errors
    /// Those of [`DeviceMemory::copy_to_host`](crate::DeviceMemory::copy_to_host).
    pub fn on_host(&self) -> Result<Cow<'_, Self>> {
        match &self.data {
            Buffer::Host(_) => Ok(Cow::Borrowed(self)),
            Buffer::Device(_) => {
                let data = self.data.to_host()?.into();
                Ok(Cow::Owned(Self { data, ..self.clone() }))
            }
        }
    }

    fn not_in_host_memory(&self, error: NotInHostMemory) -> Error {
        Error::from(error).prefixed(format_args!("tensor '{}': ", self.name))
    }
}

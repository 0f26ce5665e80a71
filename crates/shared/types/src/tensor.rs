//! A named tensor.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use crate::{Buffer, DataType, Error, NotInHostMemory, Result, Shape};

/// A named tensor. `data` holds exactly `shape` elements of `data_type`, row-major, little-endian;
/// for [`DataType::Bytes`] each element is a `u32` length followed by its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The name in the configuration.
    pub name: Arc<str>,
    /// The type of every element.
    pub data_type: DataType,
    /// The dimensions, outermost first, with the batch dimension; none has an open size.
    pub shape: Shape,
    /// The elements.
    pub data: Buffer,
}

impl Tensor {
    /// Makes a tensor over `data`, which is not checked here.
    pub fn new(
        name: impl Into<Arc<str>>,
        data_type: DataType,
        shape: impl Into<Shape>,
        data: impl Into<Buffer>,
    ) -> Self {
        Self { name: name.into(), data_type, shape: shape.into(), data: data.into() }
    }

    /// Returns the elements, for reading by the host.
    ///
    /// # Errors
    /// `Unsupported`, with the tensor's name, when they lie in the memory of a device.
    pub fn host(&self) -> Result<&[u8]> {
        self.data.host().map_err(|error| self.not_in_host_memory(error))
    }

    /// Returns the elements as [`Tensor::host`] does, with their shared ownership.
    ///
    /// # Errors
    /// The errors of [`Tensor::host`].
    pub fn host_bytes(&self) -> Result<&Bytes> {
        self.data.host_bytes().map_err(|error| self.not_in_host_memory(error))
    }

    /// Returns the tensor with its elements in host memory: a copy from a device, otherwise itself.
    ///
    /// # Errors
    /// The errors of [`DeviceMemory::copy_to_host`](crate::DeviceMemory::copy_to_host).
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

use std::sync::Arc;

use crate::{Buffer, DataType, Shape};

/// A named tensor. `data` holds exactly `shape` elements of `data_type`, row-major, little-endian;
/// for [`DataType::Bytes`] each element is a `u32` length followed by its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub name: Arc<str>,
    pub data_type: DataType,
    pub shape: Shape,
    pub data: Buffer,
}

impl Tensor {
    pub fn new(
        name: impl Into<Arc<str>>,
        data_type: DataType,
        shape: impl Into<Shape>,
        data: impl Into<Buffer>,
    ) -> Self {
        Self { name: name.into(), data_type, shape: shape.into(), data: data.into() }
    }
}

//! Tensors by libtorch's stable C functions.

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use bytes::Bytes;
use galatea_native_library::buffer_over;
use galatea_types::{Buffer, DataType, Shape};

use super::functions::{TensorFunctions, TensorHandle};
use crate::torch::{Output, data_type_of};

/// A tensor that this code owns and deletes.
pub(super) struct Tensor {
    functions: TensorFunctions,
    handle: TensorHandle,
}

// SAFETY: a handle leads to a counted reference of libtorch, which may be used and deleted on any thread; nothing
// is written through it once it is shared.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: owned, and deleted here alone. There is nothing to do about a failure.
        let _ = unsafe { (self.functions.delete)(self.handle) };
    }
}

/// The device of a tensor's elements, by libtorch's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub kind: i32,
    pub index: i32,
}

/// Elements for an input. Compiled code may write to them.
pub(super) struct Operand {
    pub scalar_type: i32,
    pub shape: Shape,
    /// Data with the size and alignment of type and shape, which nobody else uses.
    pub data: Bytes,
}

impl Tensor {
    /// # Safety
    /// `handle` must be one of libtorch's, and owned by nobody else.
    pub unsafe fn adopt(functions: TensorFunctions, handle: TensorHandle) -> Option<Self> {
        (!handle.is_null()).then(|| Self { functions, handle })
    }

    /// Makes a tensor over the operand's memory.
    ///
    /// # Safety
    /// The operand's data must live as long as the tensor or one made from it is used, and nobody else may use it.
    pub unsafe fn over(
        functions: TensorFunctions,
        operand: &Operand,
    ) -> Result<Self, StableCallError> {
        let strides = strides_of(&operand.shape);
        let mut handle = ptr::null_mut();
        // SAFETY: as many sizes and strides as the rank says; the data fills them (see `Operand`).
        let status = unsafe {
            (functions.from_blob)(
                operand.data.as_ptr().cast_mut().cast(),
                rank(&operand.shape),
                operand.shape.as_ptr(),
                strides.as_ptr(),
                0,
                operand.scalar_type,
                (functions.cpu)(),
                0,
                &mut handle,
            )
        };
        // SAFETY: a new reference.
        succeeded(status)
            .and_then(|()| unsafe { Self::adopt(functions, handle) }.ok_or(StableCallError))
    }

    /// Makes a new row-major tensor with elements of any value.
    fn empty(
        functions: TensorFunctions,
        scalar_type: i32,
        shape: &[i64],
        on: Device,
    ) -> Result<Self, StableCallError> {
        let strides = strides_of(shape);
        let mut handle = ptr::null_mut();
        // SAFETY: as many sizes and strides as the rank says.
        let status = unsafe {
            (functions.empty)(
                rank(shape),
                shape.as_ptr(),
                strides.as_ptr(),
                scalar_type,
                on.kind,
                on.index,
                &mut handle,
            )
        };
        // SAFETY: a new reference.
        succeeded(status)
            .and_then(|()| unsafe { Self::adopt(functions, handle) }.ok_or(StableCallError))
    }

    /// Makes a row-major copy on a device; complete when this returns.
    pub fn copy_to(&self, on: Device) -> Result<Self, StableCallError> {
        let copy = Self::empty(self.functions, self.scalar_type()?, self.shape()?, on)?;
        // SAFETY: two tensors of the same shape; the copy is nobody else's yet.
        succeeded(unsafe { (self.functions.copy)(copy.handle, self.handle, 0) })?;
        Ok(copy)
    }

    /// Gives the reference away.
    pub fn into_handle(self) -> TensorHandle {
        let handle = self.handle;
        std::mem::forget(self);
        handle
    }

    fn scalar_type(&self) -> Result<i32, StableCallError> {
        let mut number = 0;
        // SAFETY: the tensor is alive, the place for the result valid.
        succeeded(unsafe { (self.functions.scalar_type)(self.handle, &mut number) })?;
        Ok(number)
    }

    fn is_on_cpu(&self) -> Result<bool, StableCallError> {
        let mut kind = 0;
        // SAFETY: as above; the other takes nothing.
        succeeded(unsafe { (self.functions.device_type)(self.handle, &mut kind) })?;
        // SAFETY: takes nothing.
        Ok(kind == unsafe { (self.functions.cpu)() })
    }

    fn shape(&self) -> Result<&[i64], StableCallError> {
        self.numbers(self.functions.sizes)
    }

    fn numbers(
        &self,
        get: unsafe extern "C" fn(TensorHandle, *mut *mut i64) -> i32,
    ) -> Result<&[i64], StableCallError> {
        let (mut rank, mut numbers) = (0, ptr::null_mut());
        // SAFETY: the tensor is alive, the places for results valid.
        succeeded(unsafe { (self.functions.rank)(self.handle, &mut rank) })?;
        // SAFETY: as above.
        succeeded(unsafe { get(self.handle, &mut numbers) })?;
        let rank = usize::try_from(rank).map_err(|_| StableCallError)?;
        if rank == 0 || numbers.is_null() {
            return Ok(&[]);
        }
        // SAFETY: sizes and strides are as many as the rank says, and live as long as the tensor.
        Ok(unsafe { slice::from_raw_parts(numbers, rank) })
    }

    fn is_row_major(&self) -> Result<bool, StableCallError> {
        let (shape, strides) = (self.shape()?, self.numbers(self.functions.strides)?);
        let expected = strides_of(shape);
        let mut dims = shape.iter().zip(strides.iter().zip(&expected));
        Ok(shape.contains(&0)
            || dims.all(|(&size, (stride, wanted))| size == 1 || stride == wanted))
    }

    /// Makes an output. It keeps all memory that its elements may lie in: the inputs, the model's constants. `is_shared`:
    /// the model may write to them later.
    pub fn into_output(
        self,
        origin: &Arc<Origin>,
        is_shared: bool,
    ) -> Result<Output, StableCallError> {
        if is_shared || !self.is_on_cpu()? || !self.is_row_major()? {
            // SAFETY: takes nothing.
            let cpu = Device { kind: unsafe { (self.functions.cpu)() }, index: 0 };
            return self.copy_to(cpu)?.into_output(origin, false);
        }
        let scalar_type = self.scalar_type()?;
        let shape = Shape::from(self.shape()?);
        let data = self.elements(origin, scalar_type, &shape)?;
        Ok(Output { name: None, data_type: data_type_of(scalar_type), shape, data })
    }

    fn elements(
        self,
        origin: &Arc<Origin>,
        scalar_type: i32,
        shape: &Shape,
    ) -> Result<Buffer, StableCallError> {
        // A type that no request can carry is refused when the output is read.
        let element = data_type_of(scalar_type).and_then(DataType::byte_size).unwrap_or(0);
        let size =
            shape.element_count().and_then(|n| n.checked_mul(element)).ok_or(StableCallError)?;
        if size == 0 {
            return Ok(Buffer::default());
        }
        let mut data: *mut c_void = ptr::null_mut();
        // SAFETY: the tensor is alive, the place for the result valid.
        succeeded(unsafe { (self.functions.data)(self.handle, &mut data) })?;
        let data = NonNull::new(data.cast()).ok_or(StableCallError)?;
        // The tensor is dropped before the memory it may lie in.
        let owner = (self, origin.clone());
        // SAFETY: row-major elements of that many bytes on the CPU, which live as long as the tensor; nobody writes to them.
        Ok(unsafe { buffer_over(owner, data, size) })
    }
}

/// Memory that the elements of an output may lie in.
pub(super) struct Origin {
    pub _inputs: Vec<Bytes>,
    pub _container: Arc<dyn Send + Sync>,
}

/// A failed call of a stable function. The library itself reports the reason.
#[derive(Debug)]
pub(super) struct StableCallError;

fn succeeded(status: i32) -> Result<(), StableCallError> {
    if status == 0 { Ok(()) } else { Err(StableCallError) }
}

fn rank(shape: &[i64]) -> i64 {
    i64::try_from(shape.len()).unwrap_or(i64::MAX)
}

/// Returns the strides of row-major elements.
fn strides_of(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    let mut next: i64 = 1;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul(size.max(1));
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_row_major() {
        assert_eq!(strides_of(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(strides_of(&[2, 0, 4]), [4, 4, 1]);
        assert_eq!(strides_of(&[]), [0_i64; 0]);
    }
}

//! Tensors of the library.

use std::{
    ffi::{c_int, c_void},
    ptr::NonNull,
    sync::Arc,
};

use bytes::Bytes;
use galatea_native_library::{Owned, buffer_over, check_texts};
use galatea_types::{Buffer, DataType, Error, Result, Shape};

use super::{
    element::{STRING, data_type_of, type_number},
    functions::{RawString, RawTensor},
    library::{Library, owned},
    strings::{Texts, to_length_prefixed},
};

/// A tensor in the library's form. Immutable once made.
pub(crate) struct Tensor {
    library: Arc<Library>,
    tensor: Owned<RawTensor>,
}

// SAFETY: nothing is written after construction; reads from several threads are allowed, and the count of those who
// hold the memory behind it is atomic.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

/// The memory under a tensor. The library calls `free` with `owner` once it needs the memory no more.
struct TensorMemory {
    data: *mut c_void,
    length: usize,
    free: super::functions::FreeData,
    owner: *mut c_void,
}

impl Tensor {
    /// Makes a tensor over `data`. The library copies it only if its alignment is too small for the kernels (64 bytes).
    /// `data` must hold exactly `dims` elements of a fixed-size type.
    pub fn over(
        library: &Arc<Library>,
        data: Bytes,
        dims: &[i64],
        data_type: DataType,
    ) -> Result<Self> {
        if Shape::from(dims).byte_size(data_type) != Some(data.len()) {
            return Err(Error::internal(format!(
                "a tensor of shape {} and type {data_type} cannot lie over {} bytes",
                Shape::from(dims),
                data.len()
            )));
        }
        let memory = TensorMemory {
            data: data.as_ptr().cast_mut().cast(),
            length: data.len(),
            free: free_bytes,
            owner: Box::into_raw(Box::new(data)).cast(),
        };
        // SAFETY: the memory lives until `free_bytes` is called, by the library or here. It is lent and not given
        // away (the library knows that by the deallocator), so that no kernel writes to it.
        unsafe { Self::new(library, type_number(data_type), dims, memory) }
    }

    /// Makes a tensor of texts, which are copied. `dims` must have as many elements as there are texts.
    pub fn texts(library: &Arc<Library>, texts: &[&[u8]], dims: &[i64]) -> Result<Self> {
        check_texts(texts, dims)?;
        let mut texts = Box::new(Texts::new(library, texts)?);
        let memory = TensorMemory {
            data: texts.as_mut_ptr(),
            length: texts.byte_size(),
            free: free_texts,
            owner: Box::into_raw(texts).cast(),
        };
        // SAFETY: as above; whoever in the library still holds the texts after this tensor holds its memory.
        unsafe { Self::new(library, STRING, dims, memory) }
    }

    /// # Safety
    /// The memory has the size that shape and type say, and lives until the deallocator is called, which is called here
    /// or by the library, once.
    unsafe fn new(
        library: &Arc<Library>,
        number: c_int,
        dims: &[i64],
        memory: TensorMemory,
    ) -> Result<Self> {
        let TensorMemory { data, length, free, owner } = memory;
        let rank = c_int::try_from(dims.len()).unwrap_or(c_int::MAX);
        // SAFETY: the shape is valid for the call; the rest as the caller says.
        let made = unsafe {
            (library.functions.new_tensor)(number, dims.as_ptr(), rank, data, length, free, owner)
        };
        // SAFETY: made just now.
        unsafe { Self::adopt(library, made) }
    }

    /// Takes over a tensor that a run returned.
    ///
    /// # Safety
    /// `tensor` must be null or come from a run and be owned by nobody else.
    pub(super) unsafe fn adopt(library: &Arc<Library>, tensor: *mut RawTensor) -> Result<Self> {
        // SAFETY: the caller's word.
        let tensor = unsafe { owned(tensor, library.functions.delete_tensor) }?;
        Ok(Self { library: library.clone(), tensor })
    }

    pub(super) fn as_ptr(&self) -> *mut RawTensor {
        self.tensor.as_ptr()
    }

    /// Returns the data type, or `None` if no request can carry it.
    pub fn data_type(&self) -> Option<DataType> {
        // SAFETY: the tensor is alive.
        data_type_of(unsafe { (self.library.functions.tensor_type)(self.as_ptr()) })
    }

    pub fn shape(&self) -> Shape {
        let functions = &self.library.functions;
        // SAFETY: the tensor is alive, and the index below its rank.
        let dims: Vec<i64> = unsafe {
            let rank = (functions.dimensions)(self.as_ptr());
            (0..rank).map(|index| (functions.dimension)(self.as_ptr(), index)).collect()
        };
        Shape::from(dims)
    }

    fn raw_data(&self) -> (*const u8, usize) {
        // SAFETY: the tensor is alive; the pointer is only read through.
        unsafe {
            let data = (self.library.functions.data)(self.as_ptr());
            (data.cast_const().cast(), (self.library.functions.byte_size)(self.as_ptr()))
        }
    }

    /// Returns the elements in the form of [`galatea_types::Tensor::data`]. Those of a fixed size are not copied.
    pub fn into_buffer(self, shape: &Shape) -> Result<Buffer> {
        let wrong =
            || Error::internal(format!("the bytes of an output do not fit its shape {shape}"));
        let data_type = self.data_type().ok_or_else(wrong)?;
        let (data, length) = self.raw_data();
        if data_type == DataType::Bytes {
            let count = shape.element_count().ok_or_else(wrong)?;
            if count == 0 {
                return Ok(Buffer::default());
            }
            if data.is_null() || length < count.saturating_mul(size_of::<RawString>()) {
                return Err(wrong());
            }
            // SAFETY: the tensor is alive and has this many texts.
            let wire = unsafe { to_length_prefixed(&self.library, data.cast(), count) };
            return wire.map(Buffer::from);
        }
        if shape.byte_size(data_type) != Some(length) {
            return Err(wrong());
        }
        match NonNull::new(data.cast_mut()) {
            Some(data) if length > 0 => {
                // SAFETY: the tensor holds this many bytes as long as it lives; nobody writes to them.
                Ok(unsafe { buffer_over(self, data, length) })
            }
            _ if length == 0 => Ok(Buffer::default()),
            _ => Err(wrong()),
        }
    }
}

/// # Safety
/// `owner` is a box of bytes that was given away for this.
unsafe extern "C" fn free_bytes(_: *mut c_void, _: usize, owner: *mut c_void) {
    // SAFETY: as said; called once.
    drop(unsafe { Box::from_raw(owner.cast::<Bytes>()) });
}

/// # Safety
/// `owner` is a box of texts that was given away for this.
unsafe extern "C" fn free_texts(_: *mut c_void, _: usize, owner: *mut c_void) {
    // SAFETY: as said; called once.
    drop(unsafe { Box::from_raw(owner.cast::<Texts>()) });
}

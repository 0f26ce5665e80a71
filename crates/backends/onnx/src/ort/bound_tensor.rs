//! Tensors whose memory is kept from one run to the next.

use std::{
    ffi::CString,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use galatea_types::{DataType, Error, Result, Shape};
use ort_sys::OrtValue;

use super::{
    library::{Library, non_null},
    value::element_type,
};

/// A cache line. Every tensor begins on one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE],
}

const LINE: usize = 64;

/// A tensor of a fixed type and shape over memory of its own. Its content is written and read between runs.
pub(crate) struct BoundTensor {
    library: Arc<Library>,
    value: NonNull<OrtValue>,
    /// Memory from `Box<[Line]>`. The library reaches it through a pointer of its own, so no reference to it is kept.
    memory: NonNull<[Line]>,
    byte_size: usize,
}

// SAFETY: the memory and the value belong to this object alone; both may be used from any thread, one at a time.
unsafe impl Send for BoundTensor {}

impl BoundTensor {
    /// Makes a tensor of zeroes. Fails for elements without a fixed size.
    pub fn new(library: &Arc<Library>, data_type: DataType, dims: &Shape) -> Result<Self> {
        let size = dims.byte_size(data_type).filter(|_| data_type.byte_size().is_some());
        let byte_size = size.ok_or_else(|| {
            Error::internal(format!("a tensor of {data_type} and shape {dims} has no fixed size"))
        })?;
        // The library takes no null pointer, not even for no elements.
        let lines =
            vec![Line { _bytes: [0; LINE] }; byte_size.div_ceil(LINE).max(1)].into_boxed_slice();
        let memory = NonNull::from(Box::leak(lines));
        let mut value = ptr::null_mut();
        // SAFETY: the memory has at least `byte_size` bytes, is aligned for every type, and outlives the value.
        let made = library.check(unsafe {
            (library.api.CreateTensorWithDataAsOrtValue)(
                library.cpu_memory.as_ptr(),
                memory.as_ptr().cast(),
                byte_size,
                dims.as_ptr(),
                dims.len(),
                element_type(data_type),
                &mut value,
            )
        });
        let value = made.and_then(|()| non_null(value)).inspect_err(|_| {
            // SAFETY: leaked above, and nobody else has it.
            drop(unsafe { Box::from_raw(memory.as_ptr()) });
        })?;
        Ok(Self { library: library.clone(), value, memory, byte_size })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory has this many bytes, all of them set, and no run uses it while `self` is borrowed here.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.byte_size) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed for as long as this is.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr().cast(), self.byte_size) }
    }

    /// Returns the pointer for one run, during which `self` must stay borrowed.
    pub(super) fn as_ptr(&self) -> *mut OrtValue {
        self.value.as_ptr()
    }
}

/// The inputs or the outputs of a run, with their names.
#[derive(Default)]
pub(crate) struct BoundTensors {
    pub names: Vec<CString>,
    pub tensors: Vec<BoundTensor>,
}

impl BoundTensors {
    pub fn push(&mut self, name: &CString, tensor: BoundTensor) {
        self.names.push(name.clone());
        self.tensors.push(tensor);
    }
}

impl Drop for BoundTensor {
    fn drop(&mut self) {
        // SAFETY: the value is owned by this object and released once, then the memory it lies over.
        unsafe {
            (self.library.api.ReleaseValue)(self.value.as_ptr());
            drop(Box::from_raw(self.memory.as_ptr()));
        }
    }
}

//! An input of a request: `TRITONBACKEND_Input`.

use std::{
    ffi::{c_char, c_void},
    sync::Arc,
};

use galatea_triton_c::{
    abi, call,
    objects::buffer_attributes::{Attributes, OwnAttributes},
};
use galatea_types::{Error, LockExt as _, Result, Tensor};

use crate::request::{INPUT, REQUESTS, RequestObject, count};

/// An input with the request that has it.
struct Input {
    request: Arc<RequestObject>,
    index: usize,
}

impl Input {
    fn find(handle: *const abi::Input) -> Result<Self> {
        let (request, index) = REQUESTS.of_part(handle, INPUT)?;
        match index < request.inputs.len() {
            true => Ok(Self { request, index }),
            false => Err(Error::invalid_arg("the request has no such input")),
        }
    }

    fn tensor(&self) -> &Tensor {
        &self.request.inputs[self.index]
    }

    /// Returns the bytes of a buffer. Each input of a request lies in one buffer, also one without elements.
    fn buffer(&self, index: u32) -> Result<&[u8]> {
        match index {
            0 => self.tensor().host(),
            _ => Err(Error::invalid_arg(format!(
                "out of bounds index {index}: input '{}' has 1 buffers",
                self.tensor().name
            ))),
        }
    }
}

/// The places that a library gives for the properties of an input; it may leave any of them out.
struct Places {
    name: *mut *const c_char,
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u32,
    byte_size: *mut u64,
    buffer_count: *mut u32,
}

/// # Safety
/// All places are null or may be written.
unsafe fn put_properties(input: *const abi::Input, places: &Places) -> Result<()> {
    let input = Input::find(input)?;
    let tensor = input.tensor();
    let bytes = tensor.host()?;
    // SAFETY: the caller's word; texts and dimensions live with the request.
    unsafe {
        call::put_if_wanted(places.name, input.request.text_of(&tensor.name));
        call::put_if_wanted(places.data_type, abi::data_type::number(tensor.data_type));
        call::put_if_wanted(places.shape, tensor.shape.as_ptr());
        call::put_if_wanted(places.dims_count, count(tensor.shape.len()));
        call::put_if_wanted(places.byte_size, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        call::put_if_wanted(places.buffer_count, 1);
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn input_properties(
    input: *mut abi::Input,
    name: *mut *const c_char,
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u32,
    byte_size: *mut u64,
    buffer_count: *mut u32,
) -> *mut abi::Error {
    let places = Places { name, data_type, shape, dims_count, byte_size, buffer_count };
    // SAFETY: the caller gives places for the results, or null.
    call::answer("TRITONBACKEND_InputProperties", || unsafe { put_properties(input, &places) })
}

/// Does the same: all host policies have the same buffers.
pub(crate) unsafe extern "C" fn input_properties_for_host_policy(
    input: *mut abi::Input,
    _host_policy: *const c_char,
    name: *mut *const c_char,
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u32,
    byte_size: *mut u64,
    buffer_count: *mut u32,
) -> *mut abi::Error {
    let places = Places { name, data_type, shape, dims_count, byte_size, buffer_count };
    call::answer("TRITONBACKEND_InputPropertiesForHostPolicy", || {
        // SAFETY: the caller gives places for the results, or null.
        unsafe { put_properties(input, &places) }
    })
}

/// Writes the kind of memory without reading the library's wish, which may never have been set.
///
/// # Safety
/// All places are null or may be written.
unsafe fn put_buffer(
    input: *const abi::Input,
    index: u32,
    buffer: *mut *const c_void,
    byte_size: *mut u64,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
) -> Result<()> {
    let input = Input::find(input)?;
    let bytes = input.buffer(index)?;
    // SAFETY: the caller's word; the bytes live with the request.
    unsafe {
        call::put(buffer, bytes.as_ptr().cast(), "the buffer")?;
        call::put(byte_size, u64::try_from(bytes.len()).unwrap_or(u64::MAX), "the size")?;
        call::put(memory_type, abi::memory::CPU, "the kind of memory")?;
        call::put(memory_type_id, 0, "the number of the memory")
    }
}

pub(crate) unsafe extern "C" fn input_buffer(
    input: *mut abi::Input,
    index: u32,
    buffer: *mut *const c_void,
    byte_size: *mut u64,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_InputBuffer", || {
        // SAFETY: the caller gives places for the results.
        unsafe { put_buffer(input, index, buffer, byte_size, memory_type, memory_type_id) }
    })
}

pub(crate) unsafe extern "C" fn input_buffer_for_host_policy(
    input: *mut abi::Input,
    _host_policy: *const c_char,
    index: u32,
    buffer: *mut *const c_void,
    byte_size: *mut u64,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_InputBufferForHostPolicy", || {
        // SAFETY: the caller gives places for the results.
        unsafe { put_buffer(input, index, buffer, byte_size, memory_type, memory_type_id) }
    })
}

pub(crate) unsafe extern "C" fn input_buffer_attributes(
    input: *mut abi::Input,
    index: u32,
    buffer: *mut *const c_void,
    attributes: *mut *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_InputBufferAttributes", || {
        let input = Input::find(input)?;
        let bytes = input.buffer(index)?;
        let own =
            OwnAttributes::new(Attributes { byte_size: bytes.len(), ..Attributes::default() })?;
        let handle = own.handle();
        input.request.attributes.lock_unpoisoned().push(own);
        // SAFETY: the caller gives places for the results, which live with the request.
        unsafe {
            call::put(buffer, bytes.as_ptr().cast(), "the buffer")?;
            call::put(attributes, handle, "the attributes")
        }
    })
}

//! Responses of other models to a library: `TRITONSERVER_InferenceResponse`.

use std::{
    ffi::{CString, c_char, c_void},
    ptr,
    sync::Arc,
};

use galatea_triton_c::{
    Kind, Table, abi, call,
    objects::{allocators, errors, parameters::ReadParameter},
    text,
};
use galatea_types::{Error, InferResponse, Result, Shape, Tensor};

use crate::{
    call_target::{Destination, UserData},
    request::{count, index_of},
};

const KIND: Kind = Kind { number: 34, name: "TRITONSERVER_InferenceResponse" };
static RESPONSES: Table<abi::InferenceResponse, CallResponse> = Table::new(KIND, 1 << 20);

/// A response in the hands of a library, until it deletes it.
struct CallResponse {
    model: CString,
    version: i64,
    id: CString,
    parameters: Vec<ReadParameter>,
    outputs: Vec<CallOutput>,
    error: Option<OwnError>,
}

/// An error that belongs to a response.
struct OwnError(*mut abi::Error);

// SAFETY: a number of a table, which all threads may use.
unsafe impl Send for OwnError {}
// SAFETY: as above.
unsafe impl Sync for OwnError {}

impl Drop for OwnError {
    fn drop(&mut self) {
        let _ = errors::take(self.0);
    }
}

/// An output in memory that the library has allocated.
struct CallOutput {
    name: CString,
    data_type: u32,
    shape: Shape,
    memory: LibraryMemory,
}

/// Memory of the library's allocator, which it gets back when this is dropped.
struct LibraryMemory {
    allocator: UserData,
    release: abi::ReleaseFn,
    base: UserData,
    data: UserData,
    byte_size: usize,
    memory_type: u32,
    memory_type_id: i64,
}

impl Drop for LibraryMemory {
    fn drop(&mut self) {
        // SAFETY: the library's own function, for memory that it has allocated; nobody uses it any more.
        let failed = errors::take(unsafe {
            (self.release)(
                self.allocator.0.cast(),
                self.base.0,
                self.data.0,
                self.byte_size,
                self.memory_type,
                self.memory_type_id,
            )
        });
        if let Some(error) = failed {
            log::error!("a library did not take the memory of an output back: {error}");
        }
    }
}

impl LibraryMemory {
    /// Lets the library allocate memory, and copies the data there.
    ///
    /// # Errors
    /// Those of the library, and memory that is not the host's.
    fn filled(name: &CString, data: &[u8], destination: &Destination) -> Result<Self> {
        let allocator: *mut abi::ResponseAllocator = destination.allocator.0.cast();
        let functions = allocators::read(allocator)?;
        let (mut base, mut user_data) = (ptr::null_mut(), ptr::null_mut());
        let (mut memory_type, mut memory_type_id) = (abi::memory::CPU, 0);
        // SAFETY: the library's own function; all places are valid.
        errors::result(unsafe {
            (functions.allocate)(
                allocator,
                name.as_ptr(),
                data.len(),
                abi::memory::CPU,
                0,
                destination.allocator_data.0,
                &raw mut base,
                &raw mut user_data,
                &raw mut memory_type,
                &raw mut memory_type_id,
            )
        })?;
        let memory = Self {
            allocator: destination.allocator,
            release: functions.release,
            base: UserData(base),
            data: UserData(user_data),
            byte_size: data.len(),
            memory_type,
            memory_type_id,
        };
        let shown = name.to_string_lossy();
        match () {
            () if data.is_empty() => {}
            () if base.is_null() => {
                let text = format!("the caller's allocator gave no memory for output '{shown}'");
                return Err(Error::internal(text));
            }
            () if memory_type == abi::memory::GPU => {
                return Err(Error::unsupported(format!(
                    "the caller's allocator gave memory of a GPU for output '{shown}', which this server cannot fill"
                )));
            }
            // SAFETY: the library has allocated that many bytes, which nobody else uses.
            () => unsafe {
                ptr::copy_nonoverlapping(data.as_ptr(), base.cast::<u8>(), data.len());
            },
        }
        Ok(memory)
    }
}

/// Makes a response for a library. If its outputs find no memory, it is an error. Returns null if libraries hold too many.
pub(crate) fn give(
    result: Result<InferResponse>,
    destination: &Destination,
) -> *mut abi::InferenceResponse {
    let response = result.and_then(|response| place(&response, destination));
    let response = response.unwrap_or_else(|error| CallResponse {
        model: CString::default(),
        version: -1,
        id: CString::default(),
        parameters: Vec::new(),
        outputs: Vec::new(),
        error: Some(OwnError(errors::give(&error))),
    });
    RESPONSES.insert(Arc::new(response)).unwrap_or_else(|error| {
        log::error!("a response to a library is lost: {error}");
        ptr::null_mut()
    })
}

fn place(response: &InferResponse, destination: &Destination) -> Result<CallResponse> {
    let allocator: *mut abi::ResponseAllocator = destination.allocator.0.cast();
    if let Some(start) = allocators::read(allocator)?.start {
        // SAFETY: the library's own function and data.
        errors::result(unsafe { start(allocator, destination.allocator_data.0) })?;
    }
    let output = |tensor: &Tensor| {
        let name = text::to_c(&tensor.name);
        let data = tensor.data.to_host()?;
        let memory = LibraryMemory::filled(&name, &data, destination)?;
        let data_type = abi::data_type::number(tensor.data_type);
        Ok(CallOutput { name, data_type, shape: tensor.shape.clone(), memory })
    };
    let parameters = response.parameters.iter();
    Ok(CallResponse {
        model: text::to_c(&response.model_name),
        version: response.model_version,
        id: text::to_c(&response.id),
        parameters: parameters.map(|(name, value)| ReadParameter::new(name, value)).collect(),
        outputs: response.outputs.iter().map(output).collect::<Result<_>>()?,
        error: None,
    })
}

pub(crate) unsafe extern "C" fn response_delete(
    response: *mut abi::InferenceResponse,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseDelete", || RESPONSES.delete(response))
}

/// Returns the error of a response; it stays the response's. Null if it has none.
pub(crate) unsafe extern "C" fn response_error(
    response: *mut abi::InferenceResponse,
) -> *mut abi::Error {
    match RESPONSES.get(response) {
        Ok(response) => response.error.as_ref().map_or(ptr::null_mut(), |error| error.0),
        Err(error) => call::answer("TRITONSERVER_InferenceResponseError", || Err(error)),
    }
}

pub(crate) unsafe extern "C" fn response_model(
    response: *mut abi::InferenceResponse,
    name: *mut *const c_char,
    version: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseModel", || {
        let response = RESPONSES.get(response)?;
        // SAFETY: the caller gives places for the results; the text lives with the response.
        unsafe {
            call::put(name, response.model.as_ptr(), "the name")?;
            call::put(version, response.version, "the version")
        }
    })
}

pub(crate) unsafe extern "C" fn response_id(
    response: *mut abi::InferenceResponse,
    id: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseId", || {
        // SAFETY: the caller gives a place for the result; the text lives with the response.
        unsafe { call::put(id, RESPONSES.get(response)?.id.as_ptr(), "the id") }
    })
}

pub(crate) unsafe extern "C" fn response_parameter_count(
    response: *mut abi::InferenceResponse,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseParameterCount", || {
        let parameters = RESPONSES.get(response)?.parameters.len();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, count(parameters), "the count") }
    })
}

pub(crate) unsafe extern "C" fn response_parameter(
    response: *mut abi::InferenceResponse,
    index: u32,
    name: *mut *const c_char,
    kind: *mut u32,
    value: *mut *const c_void,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseParameter", || {
        let response = RESPONSES.get(response)?;
        let parameter = response.parameters.get(index_of(index));
        let parameter = parameter.ok_or_else(|| out_of_bounds(index, "parameters"))?;
        // SAFETY: the caller gives places for the results; they live with the response.
        unsafe { parameter.put(name, kind, value) }
    })
}

fn out_of_bounds(index: u32, what: &str) -> Error {
    Error::invalid_arg(format!("out of bounds index {index}: the response has fewer {what}"))
}

pub(crate) unsafe extern "C" fn response_output_count(
    response: *mut abi::InferenceResponse,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseOutputCount", || {
        let outputs = RESPONSES.get(response)?.outputs.len();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, count(outputs), "the count") }
    })
}

pub(crate) unsafe extern "C" fn response_output(
    response: *mut abi::InferenceResponse,
    index: u32,
    name: *mut *const c_char,
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u64,
    base: *mut *const c_void,
    byte_size: *mut usize,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
    data: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceResponseOutput", || {
        let response = RESPONSES.get(response)?;
        let output = response.outputs.get(index_of(index));
        let output = output.ok_or_else(|| out_of_bounds(index, "outputs"))?;
        let memory = &output.memory;
        // SAFETY: the caller gives places for the results, which live with the response.
        unsafe {
            call::put(name, output.name.as_ptr(), "the name")?;
            call::put(data_type, output.data_type, "the type")?;
            call::put(shape, output.shape.as_ptr(), "the shape")?;
            call::put(dims_count, count(output.shape.len()).into(), "the number of dimensions")?;
            call::put(base, memory.base.0.cast_const(), "the data")?;
            call::put(byte_size, memory.byte_size, "the size")?;
            call::put(memory_type, memory.memory_type, "the kind of memory")?;
            call::put(memory_type_id, memory.memory_type_id, "the number of the memory")?;
            call::put_if_wanted(data, memory.data.0);
        }
        Ok(())
    })
}

//! The parts of a request that a library sends to another model: inputs, wanted outputs, parameters.

use std::ffi::{c_char, c_void};

use galatea_triton_c::{abi, call, objects::buffer_attributes, text};
use galatea_types::{Error, ParameterValue, Result};

use crate::{
    call_input::InputDraft,
    call_request::{change, change_named},
    response::{read_shape, read_type},
};

/// Most inputs, requested outputs and parameters of a request.
const MOST_PARTS: usize = 4096;

fn check_room(count: usize) -> Result<()> {
    match count < MOST_PARTS {
        true => Ok(()),
        false => Err(Error::invalid_arg(format!(
            "a request cannot have more than {MOST_PARTS} of these"
        ))),
    }
}

pub(crate) unsafe extern "C" fn add_input(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    data_type: u32,
    shape: *const i64,
    dims_count: u64,
) -> *mut abi::Error {
    // SAFETY: the caller gives a terminated text, and that many dimensions.
    unsafe {
        change_named("TRITONSERVER_InferenceRequestAddInput", request, name, |draft, name| {
            check_room(draft.inputs.len())?;
            if draft.inputs.iter().any(|input| input.name == name) {
                let prefix = draft.prefix();
                let text = format!("{prefix}input '{name}' already exists in request");
                return Err(Error::invalid_arg(text));
            }
            let count = u32::try_from(dims_count).unwrap_or(u32::MAX);
            let (data_type, shape) = (read_type(data_type)?, read_shape(shape, count)?);
            draft.inputs.push(InputDraft::new(name, data_type, shape));
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn remove_input(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
) -> *mut abi::Error {
    // SAFETY: the caller gives a terminated text.
    unsafe {
        change_named("TRITONSERVER_InferenceRequestRemoveInput", request, name, |draft, name| {
            draft.input(&name)?;
            draft.inputs.retain(|input| input.name != name);
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn remove_all_inputs(
    request: *mut abi::InferenceRequest,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestRemoveAllInputs", request, |draft| {
        draft.inputs.clear();
        Ok(())
    })
}

/// Does not copy: the memory is the server's until the request is released.
///
/// # Safety
/// `name` is a terminated text, and `base` has `size` bytes that stay until the request is released.
unsafe fn append(
    function: &'static str,
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    base: *const c_void,
    size: usize,
    memory_type: u32,
) -> *mut abi::Error {
    // SAFETY: the caller's word.
    unsafe {
        change_named(function, request, name, |draft, name| {
            if memory_type == abi::memory::GPU {
                return Err(Error::unsupported(format!(
                    "input '{name}' lies in the memory of a GPU, which this server cannot take from a library"
                )));
            }
            draft.input(&name)?.append(base.cast(), size)
        })
    }
}

pub(crate) unsafe extern "C" fn append_input_data(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    base: *const c_void,
    size: usize,
    memory_type: u32,
    _memory_type_id: i64,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestAppendInputData";
    // SAFETY: the caller gives a terminated text, and memory that stays until the release.
    unsafe { append(function, request, name, base, size, memory_type) }
}

/// Takes the data for all host policies.
pub(crate) unsafe extern "C" fn append_input_data_with_host_policy(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    base: *const c_void,
    size: usize,
    memory_type: u32,
    _memory_type_id: i64,
    _host_policy: *const c_char,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy";
    // SAFETY: the caller gives a terminated text, and memory that stays until the release.
    unsafe { append(function, request, name, base, size, memory_type) }
}

pub(crate) unsafe extern "C" fn append_input_data_with_attributes(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    base: *const c_void,
    attributes: *mut abi::BufferAttributes,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes";
    match buffer_attributes::read(attributes) {
        // SAFETY: the caller gives a terminated text, and memory that stays until the release.
        Ok(found) => unsafe {
            append(function, request, name, base, found.byte_size, found.memory_type)
        },
        Err(error) => call::answer(function, || Err(error)),
    }
}

pub(crate) unsafe extern "C" fn remove_all_input_data(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestRemoveAllInputData";
    // SAFETY: the caller gives a terminated text.
    unsafe {
        change_named(function, request, name, |draft, name| {
            draft.input(&name)?.clear();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn add_requested_output(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestAddRequestedOutput";
    // SAFETY: the caller gives a terminated text.
    unsafe {
        change_named(function, request, name, |draft, name| {
            check_room(draft.outputs.len())?;
            draft.outputs.push(name);
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn remove_requested_output(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestRemoveRequestedOutput";
    // SAFETY: the caller gives a terminated text.
    unsafe {
        change_named(function, request, name, |draft, name| {
            draft.outputs.retain(|output| *output != name);
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn remove_all_requested_outputs(
    request: *mut abi::InferenceRequest,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs", request, |draft| {
        draft.outputs.clear();
        Ok(())
    })
}

/// # Safety
/// `name` is a terminated text.
unsafe fn add_parameter(
    function: &'static str,
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    value: impl FnOnce() -> Result<ParameterValue>,
) -> *mut abi::Error {
    // SAFETY: the caller's word.
    unsafe {
        change_named(function, request, name, |draft, name| {
            check_room(draft.parameters.len())?;
            draft.parameters.push((name, value()?));
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn set_string_parameter(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    value: *const c_char,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestSetStringParameter";
    // SAFETY: the caller gives terminated texts.
    unsafe {
        let value =
            || text::read(value, "the value").map(|text| ParameterValue::String(text.into_owned()));
        add_parameter(function, request, name, value)
    }
}

pub(crate) unsafe extern "C" fn set_int_parameter(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    value: i64,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestSetIntParameter";
    // SAFETY: the caller gives a terminated text.
    unsafe { add_parameter(function, request, name, || Ok(ParameterValue::Int(value))) }
}

pub(crate) unsafe extern "C" fn set_bool_parameter(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    value: bool,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestSetBoolParameter";
    // SAFETY: the caller gives a terminated text.
    unsafe { add_parameter(function, request, name, || Ok(ParameterValue::Bool(value))) }
}

pub(crate) unsafe extern "C" fn set_double_parameter(
    request: *mut abi::InferenceRequest,
    name: *const c_char,
    value: f64,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestSetDoubleParameter";
    // SAFETY: the caller gives a terminated text.
    unsafe { add_parameter(function, request, name, || Ok(ParameterValue::Double(value))) }
}

//! A request as its library sees it: `TRITONBACKEND_Request`.

use std::{
    ffi::{CString, c_char, c_void},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use galatea_backend::batching::reshape;
use galatea_triton_c::{
    Kind, Table, abi,
    abi::flag,
    call,
    objects::{buffer_attributes::OwnAttributes, parameters::ReadParameter},
    text,
};
use galatea_types::{CorrelationId, Error, InferRequest, LockExt as _, Result, Shape, Tensor};

use crate::{outlet::Outlet, state_draft::StateDraft};

const KIND: Kind = Kind { number: 23, name: "TRITONBACKEND_Request" };
pub(crate) const INPUT: Kind = Kind { number: 24, name: "TRITONBACKEND_Input" };
pub(crate) static REQUESTS: Table<abi::Request, RequestObject> = Table::new(KIND, 1 << 20);

/// A request in the hands of a library, until it releases it.
pub(crate) struct RequestObject {
    /// The inputs in the form that the model needs, in host memory.
    pub inputs: Vec<Tensor>,
    pub outlet: Arc<Outlet>,
    id: OnceLock<CString>,
    correlation_id: OnceLock<CString>,
    /// Names that the configuration does not have.
    other_names: Mutex<Vec<Arc<CString>>>,
    parameters: OnceLock<Vec<ReadParameter>>,
    pub states: Mutex<Vec<StateDraft>>,
    pub attributes: Mutex<Vec<OwnAttributes>>,
}

impl RequestObject {
    pub fn new(inputs: Vec<Tensor>, outlet: Arc<Outlet>) -> Self {
        Self {
            inputs,
            outlet,
            id: OnceLock::new(),
            correlation_id: OnceLock::new(),
            other_names: Mutex::default(),
            parameters: OnceLock::new(),
            states: Mutex::default(),
            attributes: Mutex::default(),
        }
    }

    fn head(&self) -> &InferRequest {
        &self.outlet.head
    }

    /// Returns the error of a correlation id that is asked for in a form that it does not have, in Triton's words.
    fn other_form(&self, form: &str) -> Error {
        let id = &self.head().id;
        let shown = if id.is_empty() { "<id_unknown>" } else { id };
        let text = format!("[request id: {shown}] correlation ID in request is not {form}");
        Error::invalid_arg(text)
    }

    fn parameters(&self) -> &[ReadParameter] {
        self.parameters.get_or_init(|| {
            let all = self.head().parameters.iter();
            all.map(|(name, value)| ReadParameter::new(name, value)).collect()
        })
    }

    /// Returns a name as a text that lives as long as the request.
    pub fn text_of(&self, name: &str) -> *const c_char {
        if let Some(text) = self.outlet.model.text_of(name) {
            return text.as_ptr();
        }
        let text = Arc::new(text::to_c(name));
        let mut others = self.other_names.lock_unpoisoned();
        let known = others.iter().find(|other| **other == text);
        let known = known.cloned().unwrap_or_else(|| {
            others.push(text.clone());
            text
        });
        known.as_ptr()
    }

    /// Returns the number of outputs to return, and the name of one.
    fn outputs(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        let (asked, all) = (&self.head().outputs, self.outlet.config.outputs());
        let count = if asked.is_empty() { all.len() } else { asked.len() };
        (0..count).map(move |index| asked.get(index).unwrap_or_else(|| &all[index].name))
    }
}

/// Converts inputs of a client to the form that the model needs: dimensions of `reshape`, in host memory.
///
/// # Errors
/// Those of a device's memory.
pub(crate) fn inputs_for_model(
    request: &InferRequest,
    config: &galatea_config::ModelConfig,
) -> Result<Vec<Tensor>> {
    let are_reshaped = config.inputs().iter().any(|spec| spec.reshape.is_some());
    let mut inputs = Vec::with_capacity(request.inputs.len());
    for tensor in &request.inputs {
        let mut tensor = tensor.on_host()?.into_owned();
        if are_reshaped
            && let Some(spec) = config.input(&tensor.name)
            && spec.reshape.is_some()
        {
            let (batch, dims) = split(&tensor.shape, config.has_batching());
            let dims = reshape::to_model(spec, false, dims);
            tensor.shape = batch.iter().copied().chain(dims.iter().copied()).collect();
        }
        inputs.push(tensor);
    }
    Ok(inputs)
}

/// Divides dimensions into those of the batch and the others.
pub(crate) fn split(shape: &Shape, has_batching: bool) -> (&[i64], &[i64]) {
    shape.split_at(usize::from(has_batching).min(shape.len()))
}

pub(crate) fn no_such(what: &str, name: &str) -> Error {
    Error::not_found(format!("the request has no {what} '{name}'"))
}

pub(crate) fn out_of_bounds(what: &str, index: u32, count: usize) -> Error {
    Error::invalid_arg(format!("out of bounds index {index}: request has {count} {what}"))
}

pub(crate) fn index_of(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(crate) unsafe extern "C" fn request_id(
    request: *mut abi::Request,
    id: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestId", || {
        let request = REQUESTS.get(request)?;
        let text = request.id.get_or_init(|| text::to_c(&request.head().id));
        // SAFETY: the caller gives a place for the result; the text lives with the request.
        unsafe { call::put(id, text.as_ptr(), "the id") }
    })
}

pub(crate) unsafe extern "C" fn request_correlation_id(
    request: *mut abi::Request,
    id: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestCorrelationId", || {
        let request = REQUESTS.get(request)?;
        let number = match &request.head().correlation_id {
            CorrelationId::None => 0,
            CorrelationId::Number(number) => *number,
            CorrelationId::Text(_) => {
                return Err(request.other_form("an unsigned int"));
            }
        };
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(id, number, "the id") }
    })
}

pub(crate) unsafe extern "C" fn request_correlation_id_string(
    request: *mut abi::Request,
    id: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestCorrelationIdString", || {
        let request = REQUESTS.get(request)?;
        let text = match &request.head().correlation_id {
            CorrelationId::Text(text) => text,
            CorrelationId::None | CorrelationId::Number(_) => {
                return Err(request.other_form("a string"));
            }
        };
        let text = request.correlation_id.get_or_init(|| text::to_c(text));
        // SAFETY: the caller gives a place for the result; the text lives with the request.
        unsafe { call::put(id, text.as_ptr(), "the id") }
    })
}

pub(crate) unsafe extern "C" fn request_flags(
    request: *mut abi::Request,
    flags: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestFlags", || {
        let request = REQUESTS.get(request)?;
        let start = if request.head().sequence_start { flag::SEQUENCE_START } else { 0 };
        let end = if request.head().sequence_end { flag::SEQUENCE_END } else { 0 };
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(flags, start | end, "the flags") }
    })
}

pub(crate) unsafe extern "C" fn request_timeout(
    request: *mut abi::Request,
    timeout: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_InferenceRequestTimeoutMicroseconds", || {
        let micros =
            REQUESTS.get(request)?.head().timeout.map_or(0, |timeout: Duration| {
                u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX)
            });
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(timeout, micros, "the timeout") }
    })
}

pub(crate) unsafe extern "C" fn request_is_cancelled(
    request: *mut abi::Request,
    is_cancelled: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestIsCancelled", || {
        let is = REQUESTS.get(request)?.outlet.is_cancelled();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(is_cancelled, is, "the result") }
    })
}

/// Gives no trace: spans of libraries are not recorded.
pub(crate) unsafe extern "C" fn request_trace(
    request: *mut abi::Request,
    trace: *mut *mut abi::InferenceTrace,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestTrace", || {
        REQUESTS.get(request)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(trace, std::ptr::null_mut(), "the trace") }
    })
}

pub(crate) unsafe extern "C" fn request_parameter_count(
    request: *mut abi::Request,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestParameterCount", || {
        let parameters = REQUESTS.get(request)?.head().parameters.len();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, count(parameters), "the count") }
    })
}

pub(crate) unsafe extern "C" fn request_parameter(
    request: *mut abi::Request,
    index: u32,
    name: *mut *const c_char,
    kind: *mut u32,
    value: *mut *const c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestParameter", || {
        let request = REQUESTS.get(request)?;
        let parameters = request.parameters();
        let parameter = parameters.get(index_of(index));
        let parameter =
            parameter.ok_or_else(|| out_of_bounds("parameters", index, parameters.len()))?;
        // SAFETY: the caller gives places for the results; they live with the request.
        unsafe { parameter.put(name, kind, value) }
    })
}

pub(crate) unsafe extern "C" fn request_input_count(
    request: *mut abi::Request,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestInputCount", || {
        let inputs = REQUESTS.get(request)?.inputs.len();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, count(inputs), "the count") }
    })
}

pub(crate) unsafe extern "C" fn request_input_name(
    request: *mut abi::Request,
    index: u32,
    name: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestInputName", || {
        let request = REQUESTS.get(request)?;
        let input = request.inputs.get(index_of(index));
        let input = input.ok_or_else(|| out_of_bounds("inputs", index, request.inputs.len()))?;
        // SAFETY: the caller gives a place for the result; the text lives with the request.
        unsafe { call::put(name, request.text_of(&input.name), "the name") }
    })
}

pub(crate) unsafe extern "C" fn request_input(
    request: *mut abi::Request,
    name: *const c_char,
    input: *mut *mut abi::Input,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestInput", || {
        let held = REQUESTS.get(request)?;
        // SAFETY: the caller gives a terminated text.
        let name = unsafe { text::read(name, "the name") }?;
        let index = held.inputs.iter().position(|input| *input.name == *name);
        let index = index.ok_or_else(|| no_such("input", &name))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(input, REQUESTS.part(request, INPUT, index)?, "the input") }
    })
}

pub(crate) unsafe extern "C" fn request_input_by_index(
    request: *mut abi::Request,
    index: u32,
    input: *mut *mut abi::Input,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestInputByIndex", || {
        let inputs = REQUESTS.get(request)?.inputs.len();
        if index_of(index) >= inputs {
            return Err(out_of_bounds("inputs", index, inputs));
        }
        let part = REQUESTS.part(request, INPUT, index_of(index))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(input, part, "the input") }
    })
}

pub(crate) unsafe extern "C" fn request_output_count(
    request: *mut abi::Request,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestOutputCount", || {
        let outputs = REQUESTS.get(request)?.outputs().len();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, count(outputs), "the count") }
    })
}

pub(crate) unsafe extern "C" fn request_output_name(
    request: *mut abi::Request,
    index: u32,
    name: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestOutputName", || {
        let request = REQUESTS.get(request)?;
        let output = request.outputs().nth(index_of(index));
        let output = output
            .ok_or_else(|| out_of_bounds("requested outputs", index, request.outputs().len()))?;
        // SAFETY: the caller gives a place for the result; the text lives with the request.
        unsafe { call::put(name, request.text_of(output), "the name") }
    })
}

/// Answers that outputs lie in host memory, whatever the library prefers.
pub(crate) unsafe extern "C" fn request_output_buffer_properties(
    request: *mut abi::Request,
    _name: *const c_char,
    _byte_size: *mut usize,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestOutputBufferProperties", || {
        REQUESTS.get(request)?;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(memory_type, abi::memory::CPU, "the kind of memory")?;
            call::put(memory_type_id, 0, "the number of the memory")
        }
    })
}

/// Ends the request's time in the hands of the library. Its responses may come later, by a factory or a response made before.
pub(crate) unsafe extern "C" fn request_release(
    request: *mut abi::Request,
    flags: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_RequestRelease", || {
        if flags & (flag::RELEASE_ALL | flag::RELEASE_RESCHEDULE) == 0 {
            let text = format!("the flags {flags} release nothing");
            return Err(Error::invalid_arg(text));
        }
        let request = REQUESTS.remove(request)?;
        if flags & flag::RELEASE_RESCHEDULE != 0 {
            request.outlet.execute_again();
        }
        Ok(())
    })
}

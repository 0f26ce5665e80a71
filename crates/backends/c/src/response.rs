//! Responses that libraries make: `TRITONBACKEND_Response`, `TRITONBACKEND_Output` and `TRITONBACKEND_ResponseFactory`.

use std::{
    ffi::{c_char, c_void},
    sync::{Arc, Mutex},
};

use galatea_triton_c::{
    Kind, Table, abi,
    abi::flag,
    call,
    objects::{
        buffer_attributes::{Attributes, OwnAttributes},
        errors,
    },
    text,
};
use galatea_types::{Error, LockExt as _, ParameterValue, Parameters, Result, Shape};

use crate::{
    outlet::{Content, Outlet},
    output::OutputDraft,
    request::{REQUESTS, count, index_of},
};

const KIND: Kind = Kind { number: 25, name: "TRITONBACKEND_Response" };
const OUTPUT: Kind = Kind { number: 26, name: "TRITONBACKEND_Output" };
const FACTORY: Kind = Kind { number: 27, name: "TRITONBACKEND_ResponseFactory" };
static RESPONSES: Table<abi::Response, ResponseObject> = Table::new(KIND, 1 << 20);
pub(crate) static FACTORIES: Table<abi::ResponseFactory, Factory> = Table::new(FACTORY, 1 << 20);
/// Most dimensions of a tensor, most parameters of a response.
pub(crate) const MOST_DIMENSIONS: usize = 64;
const MOST_PARAMETERS: usize = 4096;

/// A response that is not sent yet.
struct ResponseObject {
    outlet: Arc<Outlet>,
    content: Mutex<ResponseDraft>,
    attributes: Mutex<Vec<OwnAttributes>>,
}

#[derive(Default)]
struct ResponseDraft {
    #[expect(
        clippy::vec_box,
        reason = "libraries hold addresses in outputs while others are added"
    )]
    outputs: Vec<Box<OutputDraft>>,
    parameters: Parameters,
}

/// Makes responses after its request was released.
pub(crate) struct Factory(pub Arc<Outlet>);

impl ResponseDraft {
    fn into_content(self, outlet: &Outlet) -> Content {
        let mut tensors = Vec::with_capacity(self.outputs.len());
        for output in self.outputs {
            if output.is_wanted(outlet) {
                tensors.push(output.into_tensor(outlet)?);
            }
        }
        Ok((tensors, self.parameters))
    }
}

/// Removes what a library holds of an instance that ended.
pub(crate) fn forget_instance(instance: usize) {
    RESPONSES.remove_all(|response| response.outlet.instance == instance);
    FACTORIES.remove_all(|factory| factory.0.instance == instance);
}

fn add(outlet: Arc<Outlet>) -> Result<*mut abi::Response> {
    RESPONSES.insert(Arc::new(ResponseObject {
        outlet,
        content: Mutex::default(),
        attributes: Mutex::default(),
    }))
}

/// # Safety
/// `count` elements, or null without any.
pub(crate) unsafe fn read_shape(first: *const i64, count: u32) -> Result<Shape> {
    // SAFETY: the caller's word.
    let dims = unsafe { call::list(first, count.into(), MOST_DIMENSIONS, "dimensions") }?;
    match dims.iter().all(|&dim| dim >= 0) {
        true => Ok(Shape::from(dims)),
        false => Err(Error::invalid_arg(format!("a tensor cannot have the shape {dims:?}"))),
    }
}

/// Returns the type of this number.
pub(crate) fn read_type(number: u32) -> Result<galatea_types::DataType> {
    abi::data_type::of_number(number)
        .ok_or_else(|| Error::invalid_arg(format!("{number} is the number of no data type")))
}

pub(crate) unsafe extern "C" fn response_new(
    response: *mut *mut abi::Response,
    request: *mut abi::Request,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseNew", || {
        let handle = add(REQUESTS.get(request)?.outlet.clone())?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(response, handle, "the response") }
    })
}

pub(crate) unsafe extern "C" fn response_new_from_factory(
    response: *mut *mut abi::Response,
    factory: *mut abi::ResponseFactory,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseNewFromFactory", || {
        let handle = add(FACTORIES.get(factory)?.0.clone())?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(response, handle, "the response") }
    })
}

pub(crate) unsafe extern "C" fn response_delete(response: *mut abi::Response) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseDelete", || RESPONSES.delete(response))
}

pub(crate) unsafe extern "C" fn response_output(
    response: *mut abi::Response,
    output: *mut *mut abi::Output,
    name: *const c_char,
    data_type: u32,
    shape: *const i64,
    dims_count: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseOutput", || {
        let held = RESPONSES.get(response)?;
        // SAFETY: the caller gives a terminated text, and that many dimensions.
        let (name, shape) =
            unsafe { (text::read(name, "the name")?, read_shape(shape, dims_count)?) };
        let data_type = read_type(data_type)?;
        let mut content = held.content.lock_unpoisoned();
        let part = RESPONSES.part(response, OUTPUT, content.outputs.len())?;
        let name = held.outlet.model.name_of(&name);
        if content.outputs.capacity() == 0 {
            content.outputs.reserve_exact(held.outlet.config.outputs().len());
        }
        content.outputs.push(Box::new(OutputDraft::new(name, data_type, shape)));
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(output, part, "the output") }
    })
}

pub(crate) unsafe extern "C" fn output_buffer(
    output: *mut abi::Output,
    buffer: *mut *mut c_void,
    byte_size: u64,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_OutputBuffer", || {
        let (response, index) = RESPONSES.of_part(output, OUTPUT)?;
        let mut content = response.content.lock_unpoisoned();
        let draft = content.outputs.get_mut(index).ok_or_else(no_output)?;
        let address = draft.allocate(&response.outlet, byte_size)?;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(buffer, address.cast(), "the buffer")?;
            call::put(memory_type, abi::memory::CPU, "the kind of memory")?;
            call::put(memory_type_id, 0, "the number of the memory")
        }
    })
}

fn no_output() -> Error {
    Error::invalid_arg("the response has no such output")
}

pub(crate) unsafe extern "C" fn output_buffer_attributes(
    output: *mut abi::Output,
    attributes: *mut *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_OutputBufferAttributes", || {
        let (response, index) = RESPONSES.of_part(output, OUTPUT)?;
        let byte_size = {
            let content = response.content.lock_unpoisoned();
            content.outputs.get(index).ok_or_else(no_output)?.byte_size()
        };
        let own = OwnAttributes::new(Attributes { byte_size, ..Attributes::default() })?;
        let handle = own.handle();
        response.attributes.lock_unpoisoned().push(own);
        // SAFETY: the caller gives a place for the result, which lives with the response.
        unsafe { call::put(attributes, handle, "the attributes") }
    })
}

fn add_parameter(
    function: &'static str,
    response: *mut abi::Response,
    name: *const c_char,
    value: impl FnOnce() -> Result<ParameterValue>,
) -> *mut abi::Error {
    call::answer(function, || {
        let held = RESPONSES.get(response)?;
        // SAFETY: the callers of all functions for parameters give a terminated text.
        let name = unsafe { text::read(name, "the name") }?.into_owned();
        let value = value()?;
        let parameters = &mut held.content.lock_unpoisoned().parameters;
        if parameters.len() >= MOST_PARAMETERS {
            let text = format!("a response cannot have more than {MOST_PARAMETERS} parameters");
            return Err(Error::invalid_arg(text));
        }
        parameters.push((name, value));
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_string_parameter(
    response: *mut abi::Response,
    name: *const c_char,
    value: *const c_char,
) -> *mut abi::Error {
    let value = || {
        // SAFETY: the caller gives a terminated text.
        let text = unsafe { text::read(value, "the value") }?;
        Ok(ParameterValue::String(text.into_owned()))
    };
    add_parameter("TRITONBACKEND_ResponseSetStringParameter", response, name, value)
}

pub(crate) unsafe extern "C" fn set_int_parameter(
    response: *mut abi::Response,
    name: *const c_char,
    value: i64,
) -> *mut abi::Error {
    let value = || Ok(ParameterValue::Int(value));
    add_parameter("TRITONBACKEND_ResponseSetIntParameter", response, name, value)
}

pub(crate) unsafe extern "C" fn set_bool_parameter(
    response: *mut abi::Response,
    name: *const c_char,
    value: bool,
) -> *mut abi::Error {
    let value = || Ok(ParameterValue::Bool(value));
    add_parameter("TRITONBACKEND_ResponseSetBoolParameter", response, name, value)
}

pub(crate) unsafe extern "C" fn set_double_parameter(
    response: *mut abi::Response,
    name: *const c_char,
    value: f64,
) -> *mut abi::Error {
    let value = || Ok(ParameterValue::Double(value));
    add_parameter("TRITONBACKEND_ResponseSetDoubleParameter", response, name, value)
}

/// Takes the response from the library, also if it is an error. The error stays the library's.
pub(crate) unsafe extern "C" fn response_send(
    response: *mut abi::Response,
    flags: u32,
    error: *mut abi::Error,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseSend", || {
        let held = RESPONSES.remove(response)?;
        let draft = std::mem::take(&mut *held.content.lock_unpoisoned());
        let content = match errors::read(error) {
            Some(error) => Err(error),
            None => draft.into_content(&held.outlet),
        };
        held.outlet.send(Some(content), flags & flag::RESPONSE_FINAL != 0)
    })
}

pub(crate) unsafe extern "C" fn factory_new(
    factory: *mut *mut abi::ResponseFactory,
    request: *mut abi::Request,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseFactoryNew", || {
        let handle = FACTORIES.insert(Arc::new(Factory(REQUESTS.get(request)?.outlet.clone())))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(factory, handle, "the factory") }
    })
}

pub(crate) unsafe extern "C" fn factory_delete(
    factory: *mut abi::ResponseFactory,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseFactoryDelete", || FACTORIES.delete(factory))
}

pub(crate) unsafe extern "C" fn factory_send_flags(
    factory: *mut abi::ResponseFactory,
    flags: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseFactorySendFlags", || {
        FACTORIES.get(factory)?.0.send(None, flags & flag::RESPONSE_FINAL != 0)
    })
}

pub(crate) unsafe extern "C" fn factory_is_cancelled(
    factory: *mut abi::ResponseFactory,
    is_cancelled: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ResponseFactoryIsCancelled", || {
        let is = FACTORIES.get(factory)?.0.is_cancelled();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(is_cancelled, is, "the result") }
    })
}

/// The places that a library gives for the description of an output.
struct Places {
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u64,
}

impl Places {
    /// # Safety
    /// All places may be written.
    unsafe fn put(&self, output: &OutputDraft) -> Result<()> {
        let dims = u64::from(count(output.shape.len()));
        // SAFETY: the caller's word; the dimensions live with the response, which moves no output's heap memory.
        unsafe {
            call::put(self.data_type, abi::data_type::number(output.data_type), "the type")?;
            call::put(self.shape, output.shape.as_ptr(), "the shape")?;
            call::put(self.dims_count, dims, "the number of dimensions")
        }
    }
}

pub(crate) unsafe extern "C" fn response_output_by_name(
    response: *mut abi::Response,
    name: *const c_char,
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_InferenceResponseOutputByName", || {
        let held = RESPONSES.get(response)?;
        // SAFETY: the caller gives a terminated text.
        let name = unsafe { text::read(name, "the name") }?;
        let content = held.content.lock_unpoisoned();
        let output = content.outputs.iter().find(|output| *output.name == *name);
        let output = output.ok_or_else(no_output)?;
        // SAFETY: the caller gives places for the results.
        unsafe { Places { data_type, shape, dims_count }.put(output) }
    })
}

pub(crate) unsafe extern "C" fn response_output_by_index(
    response: *mut abi::Response,
    index: u32,
    name: *mut *const c_char,
    data_type: *mut u32,
    shape: *mut *const i64,
    dims_count: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_InferenceResponseOutput", || {
        let held = RESPONSES.get(response)?;
        let content = held.content.lock_unpoisoned();
        let output = content.outputs.get(index_of(index)).ok_or_else(no_output)?;
        // SAFETY: the caller gives places for the results; the text lives with the response.
        unsafe {
            call::put(name, output.text().as_ptr(), "the name")?;
            Places { data_type, shape, dims_count }.put(output)
        }
    })
}

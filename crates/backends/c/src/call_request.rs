//! Requests of libraries to other models: `TRITONSERVER_InferenceRequest`.

use std::{
    ffi::{CString, c_char, c_void},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use galatea_triton_c::{Kind, Table, abi, abi::flag, call, objects::allocators, text};
use galatea_types::{
    Cancellation, CorrelationId, Error, InferRequest, LockExt as _, Parameters, Refused,
    RequestContext, Responder, Result,
};

use crate::{
    call_flight::{Flight, Returnable, Sink},
    call_input::InputDraft,
    call_target::{Destination, ReleaseCallback, UserData},
    server::{SERVERS, ServerObject, unknown_model, version_of},
};

const KIND: Kind = Kind { number: 33, name: "TRITONSERVER_InferenceRequest" };
pub(crate) static CALLS: Table<abi::InferenceRequest, CallObject> = Table::new(KIND, 1 << 18);

/// Triton's errors of a correlation id that is asked for in the other form.
const NO_NUMBER: &str = "given request's correlation id is not an unsigned int";
const NO_TEXT: &str = "given request's correlation id is not a string";

/// A request that a library makes.
pub(crate) struct CallObject {
    server: Arc<ServerObject>,
    model: String,
    version: Option<i64>,
    draft: Mutex<CallDraft>,
}

#[derive(Default)]
pub(crate) struct CallDraft {
    id: CString,
    flags: u32,
    correlation_id: CorrelationId,
    /// The correlation id, if it is a text.
    correlation_text: Option<CString>,
    priority: u64,
    timeout: u64,
    pub inputs: Vec<InputDraft>,
    pub outputs: Vec<String>,
    pub parameters: Parameters,
    release: Option<ReleaseCallback>,
    destination: Option<Destination>,
    /// Cancels the request while the server has it.
    in_flight: Option<Cancellation>,
    is_cancelled: bool,
}

impl CallObject {
    /// Returns the request for a change.
    fn draft(&self) -> Result<MutexGuard<'_, CallDraft>> {
        let draft = self.draft.lock_unpoisoned();
        match draft.in_flight {
            None => Ok(draft),
            Some(_) => Err(Error::invalid_arg("the request is in the hands of the server")),
        }
    }

    fn callbacks(&self) -> Result<(ReleaseCallback, Destination)> {
        let draft = self.draft()?;
        let missing = |what| Error::invalid_arg(format!("the request has no callback for {what}"));
        let release = draft.release.ok_or_else(|| missing("its release"))?;
        Ok((release, draft.destination.ok_or_else(|| missing("responses"))?))
    }

    /// Marks the request as one that the server has, and returns it in the server's form.
    fn begin(&self, cancellation: &Cancellation, flight: &Arc<Flight>) -> Result<InferRequest> {
        let mut draft = self.draft()?;
        let inputs = draft.inputs.iter().map(|input| input.to_tensor(flight));
        let inputs = inputs.collect::<Result<_>>()?;
        draft.in_flight = Some(cancellation.clone());
        draft.is_cancelled = false;
        Ok(InferRequest {
            model_version: self.version,
            id: draft.id.to_string_lossy().into_owned(),
            inputs,
            outputs: draft.outputs.iter().map(|name| name.as_str().into()).collect(),
            parameters: draft.parameters.clone(),
            correlation_id: draft.correlation_id.clone(),
            sequence_start: draft.flags & flag::SEQUENCE_START != 0,
            sequence_end: draft.flags & flag::SEQUENCE_END != 0,
            priority: draft.priority,
            timeout: (draft.timeout > 0).then(|| Duration::from_micros(draft.timeout)),
            ..InferRequest::new(self.model.as_str())
        })
    }
}

impl Returnable for CallObject {
    fn land(&self) {
        self.draft.lock_unpoisoned().in_flight = None;
    }
}

impl CallDraft {
    pub fn input(&mut self, name: &str) -> Result<&mut InputDraft> {
        let prefix = self.prefix();
        let input = self.inputs.iter_mut().find(|input| input.name == *name);
        input.ok_or_else(|| {
            Error::invalid_arg(format!("{prefix}input '{name}' does not exist in request"))
        })
    }

    pub fn prefix(&self) -> String {
        let id = self.id.to_string_lossy();
        format!("[request id: {}] ", if id.is_empty() { "<id_unknown>" } else { &id })
    }
}

pub(crate) fn change(
    function: &'static str,
    request: *const abi::InferenceRequest,
    change: impl FnOnce(&mut CallDraft) -> Result<()>,
) -> *mut abi::Error {
    call::answer(function, || change(&mut *CALLS.get(request)?.draft()?))
}

/// Changes a request with a name that the library gives.
///
/// # Safety
/// `name` is a terminated text, or null.
pub(crate) unsafe fn change_named(
    function: &'static str,
    request: *const abi::InferenceRequest,
    name: *const c_char,
    change: impl FnOnce(&mut CallDraft, String) -> Result<()>,
) -> *mut abi::Error {
    call::answer(function, || {
        // SAFETY: the caller's word.
        let name = unsafe { text::read(name, "the name") }?.into_owned();
        change(&mut *CALLS.get(request)?.draft()?, name)
    })
}

pub(crate) unsafe extern "C" fn request_new(
    request: *mut *mut abi::InferenceRequest,
    server: *mut abi::Server,
    model: *const c_char,
    version: i64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestNew", || {
        let server = SERVERS.get(server)?;
        // SAFETY: the caller gives a terminated text.
        let model = unsafe { text::read(model, "the name") }?.into_owned();
        let version = version_of(version);
        server
            .0
            .models
            .is_decoupled(&model, version)
            .map_err(|_| unknown_model(&model, version))?;
        let call = CallObject { server, model, version, draft: Mutex::default() };
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(request, CALLS.insert(Arc::new(call))?, "the request") }
    })
}

pub(crate) unsafe extern "C" fn request_delete(
    request: *mut abi::InferenceRequest,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestDelete", || {
        if request.is_null() {
            return Ok(());
        }
        drop(CALLS.get(request)?.draft()?);
        CALLS.delete(request)
    })
}

/// Gives a text that lives until the id is changed.
pub(crate) unsafe extern "C" fn request_id(
    request: *mut abi::InferenceRequest,
    id: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestId", || {
        let call = CALLS.get(request)?;
        let address = call.draft.lock_unpoisoned().id.as_ptr();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(id, address, "the id") }
    })
}

pub(crate) unsafe extern "C" fn set_id(
    request: *mut abi::InferenceRequest,
    id: *const c_char,
) -> *mut abi::Error {
    // SAFETY: the caller gives a terminated text.
    unsafe {
        change_named("TRITONSERVER_InferenceRequestSetId", request, id, |draft, id| {
            draft.id = text::to_c(&id);
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn request_flags(
    request: *mut abi::InferenceRequest,
    flags: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestFlags", || {
        let number = CALLS.get(request)?.draft.lock_unpoisoned().flags;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(flags, number, "the flags") }
    })
}

pub(crate) unsafe extern "C" fn set_flags(
    request: *mut abi::InferenceRequest,
    flags: u32,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestSetFlags", request, |draft| {
        draft.flags = flags;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_correlation_id(
    request: *mut abi::InferenceRequest,
    id: u64,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestSetCorrelationId", request, |draft| {
        draft.correlation_id =
            if id == 0 { CorrelationId::None } else { CorrelationId::Number(id) };
        draft.correlation_text = None;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_correlation_id_string(
    request: *mut abi::InferenceRequest,
    id: *const c_char,
) -> *mut abi::Error {
    let function = "TRITONSERVER_InferenceRequestSetCorrelationIdString";
    // SAFETY: the caller gives a terminated text.
    unsafe {
        change_named(function, request, id, |draft, id| {
            draft.correlation_id = CorrelationId::from_text(&id)?;
            draft.correlation_text = Some(text::to_c(&id));
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn correlation_id(
    request: *mut abi::InferenceRequest,
    id: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestCorrelationId", || {
        let call = CALLS.get(request)?;
        let draft = call.draft.lock_unpoisoned();
        let number = match &draft.correlation_id {
            _ if draft.correlation_text.is_some() => Err(Error::invalid_arg(NO_NUMBER)),
            CorrelationId::Number(number) => Ok(*number),
            _ => Ok(0),
        }?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(id, number, "the id") }
    })
}

/// Gives a text that lives until the correlation id is changed.
pub(crate) unsafe extern "C" fn correlation_id_string(
    request: *mut abi::InferenceRequest,
    id: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestCorrelationIdString", || {
        let call = CALLS.get(request)?;
        let draft = call.draft.lock_unpoisoned();
        let text = draft.correlation_text.as_ref().ok_or_else(|| Error::invalid_arg(NO_TEXT))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(id, text.as_ptr(), "the id") }
    })
}

pub(crate) unsafe extern "C" fn timeout(
    request: *mut abi::InferenceRequest,
    microseconds: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestTimeoutMicroseconds", || {
        let number = CALLS.get(request)?.draft.lock_unpoisoned().timeout;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(microseconds, number, "the time-out") }
    })
}

pub(crate) unsafe extern "C" fn set_priority(
    request: *mut abi::InferenceRequest,
    priority: u32,
) -> *mut abi::Error {
    // SAFETY: nothing more is asked of the caller.
    unsafe { set_priority_u64(request, priority.into()) }
}

pub(crate) unsafe extern "C" fn set_priority_u64(
    request: *mut abi::InferenceRequest,
    priority: u64,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestSetPriorityUInt64", request, |draft| {
        draft.priority = priority;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_timeout(
    request: *mut abi::InferenceRequest,
    microseconds: u64,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestSetTimeoutMicroseconds", request, |draft| {
        draft.timeout = microseconds;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn cancel(request: *mut abi::InferenceRequest) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestCancel", || {
        let call = CALLS.get(request)?;
        let mut draft = call.draft.lock_unpoisoned();
        let cancellation = draft.in_flight.clone().ok_or_else(|| {
            Error::internal(
                "It is not possible to cancel an inference request before calling TRITONSERVER_InferAsync.",
            )
        })?;
        draft.is_cancelled = true;
        cancellation.cancel();
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn is_cancelled(
    request: *mut abi::InferenceRequest,
    is_cancelled: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_InferenceRequestIsCancelled", || {
        let is = CALLS.get(request)?.draft.lock_unpoisoned().is_cancelled;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(is_cancelled, is, "the result") }
    })
}

pub(crate) unsafe extern "C" fn set_release_callback(
    request: *mut abi::InferenceRequest,
    release: Option<abi::RequestReleaseFn>,
    data: *mut c_void,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestSetReleaseCallback", request, |draft| {
        let data = UserData(data);
        draft.release = release.map(|function| ReleaseCallback { function, data });
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_response_callback(
    request: *mut abi::InferenceRequest,
    allocator: *mut abi::ResponseAllocator,
    allocator_data: *mut c_void,
    respond: Option<abi::ResponseCompleteFn>,
    data: *mut c_void,
) -> *mut abi::Error {
    change("TRITONSERVER_InferenceRequestSetResponseCallback", request, |draft| {
        allocators::read(allocator)?;
        let respond = respond
            .ok_or_else(|| Error::invalid_arg("a request needs a function for responses"))?;
        draft.destination = Some(Destination {
            allocator: UserData(allocator.cast()),
            allocator_data: UserData(allocator_data),
            respond,
            data: UserData(data),
        });
        Ok(())
    })
}

/// Sends a request to its model. A refused one stays the library's, which may correct it and send it again. The trace is not
/// used.
pub(crate) unsafe extern "C" fn server_infer_async(
    server: *mut abi::Server,
    request: *mut abi::InferenceRequest,
    _trace: *mut abi::InferenceTrace,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ServerInferAsync", || {
        SERVERS.get(server)?;
        let call = CALLS.get(request)?;
        let cancellation = Cancellation::default();
        let (release, destination) = call.callbacks()?;
        let flight = Arc::new(Flight::new(request, call.clone(), release));
        let message = call.begin(&cancellation, &flight).inspect_err(|_| flight.keep())?;
        let sink = Sink::new(destination, cancellation.clone(), flight.clone());
        let context = RequestContext::from_model(cancellation, galatea_types::Observers::default());
        let responder = Responder::calling(sink);
        match call.server.0.models.infer(message, context, responder) {
            Ok(()) => Ok(()),
            Err(refused) => {
                flight.keep();
                Err(Refused::into_error(refused))
            }
        }
    })
}

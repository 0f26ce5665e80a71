//! The server as libraries see it: `TRITONSERVER_Server`.

use std::{collections::BTreeMap, ffi::c_char, sync::Arc};

use galatea_backend::ServerAccess;
use galatea_triton_c::{
    Kind, Registered, Table, abi,
    abi::flag,
    call,
    objects::parameters::{self, Value},
    text,
};
use galatea_types::{Buffer, Error, ParameterValue, Result};

const KIND: Kind = Kind { number: 32, name: "TRITONSERVER_Server" };
pub(crate) static SERVERS: Table<abi::Server, ServerObject> = Table::new(KIND, 1 << 16);
/// Prefix of the names of files among the parameters of a load.
const FILE_PREFIX: &str = "file:";

/// The server around one model.
pub(crate) struct ServerObject(pub ServerAccess);

impl ServerObject {
    pub fn register(self) -> Result<Registered<abi::Server, ServerObject>> {
        SERVERS.register(Arc::new(self))
    }
}

/// Returns the version that a number chooses; `None` for a negative one: then the server chooses.
pub(crate) fn version_of(number: i64) -> Option<i64> {
    (number >= 0).then_some(number)
}

/// Returns the error of a request to a model that is not there, in Triton's words.
pub(crate) fn unknown_model(name: &str, version: Option<i64>) -> Error {
    let version = version.map(|version| format!(" version {version}")).unwrap_or_default();
    Error::not_found(format!("Request for unknown model: '{name}'{version} is not found"))
}

pub(crate) unsafe extern "C" fn server_is_live(
    server: *mut abi::Server,
    is_live: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ServerIsLive", || {
        SERVERS.get(server)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(is_live, true, "the result") }
    })
}

pub(crate) unsafe extern "C" fn server_model_is_ready(
    server: *mut abi::Server,
    name: *const c_char,
    version: i64,
    is_ready: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ServerModelIsReady", || {
        let server = SERVERS.get(server)?;
        // SAFETY: the caller gives a terminated text.
        let name = unsafe { text::read(name, "the name") }?;
        let is = server.0.control.is_model_ready(&name, version_of(version));
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(is_ready, is, "the result") }
    })
}

pub(crate) unsafe extern "C" fn server_model_transaction_properties(
    server: *mut abi::Server,
    name: *const c_char,
    version: i64,
    flags: *mut u32,
    _more: *mut *mut std::ffi::c_void,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ServerModelTransactionProperties", || {
        let server = SERVERS.get(server)?;
        // SAFETY: the caller gives a terminated text.
        let name = unsafe { text::read(name, "the name") }?;
        let version = version_of(version);
        let is_decoupled = server.0.models.is_decoupled(&name, version);
        let is_decoupled = is_decoupled.map_err(|_| unknown_model(&name, version))?;
        let number = if is_decoupled { flag::DECOUPLED } else { flag::ONE_TO_ONE };
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(flags, number, "the flags") }
    })
}

pub(crate) unsafe extern "C" fn server_load_model(
    server: *mut abi::Server,
    name: *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ServerLoadModel", || {
        let server = SERVERS.get(server)?;
        // SAFETY: the caller gives a terminated text.
        let name = unsafe { text::read(name, "the name") }?;
        server.0.control.load_model(&name, None, BTreeMap::new())
    })
}

/// Takes a configuration, and files by their paths in the model's folder.
pub(crate) unsafe extern "C" fn server_load_model_with_parameters(
    server: *mut abi::Server,
    name: *const c_char,
    parameters: *const *const abi::Parameter,
    count: u64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ServerLoadModelWithParameters", || {
        let server = SERVERS.get(server)?;
        // SAFETY: the caller gives a terminated text, and that many handles.
        let (name, listed) =
            unsafe { (text::read(name, "the name")?, parameters::read(parameters, count)?) };
        let (mut config, mut files) = (None, BTreeMap::new());
        for parameter in listed {
            match (parameter.name.as_str(), &parameter.value) {
                ("config", Value::Plain(ParameterValue::String(text))) => {
                    config = Some(text.clone())
                }
                (file, Value::Bytes(bytes)) if file.starts_with(FILE_PREFIX) => {
                    let path = file.strip_prefix(FILE_PREFIX).unwrap_or(file).to_owned();
                    files.insert(path, Buffer::from(bytes.clone()));
                }
                (other, _) => {
                    let text = format!("Unrecognized load parameter '{other}'.");
                    return Err(Error::invalid_arg(text));
                }
            }
        }
        server.0.control.load_model(&name, config, files)
    })
}

/// # Safety
/// `name` is a terminated text, or null.
unsafe fn unload(
    server: *const abi::Server,
    name: *const c_char,
    unload_dependents: bool,
) -> Result<()> {
    let server = SERVERS.get(server)?;
    // SAFETY: the caller's word.
    let name = unsafe { text::read(name, "the name") }?;
    server.0.control.unload_model(&name, unload_dependents)
}

pub(crate) unsafe extern "C" fn server_unload_model(
    server: *mut abi::Server,
    name: *const c_char,
) -> *mut abi::Error {
    // SAFETY: the caller gives a terminated text.
    call::answer("TRITONSERVER_ServerUnloadModel", || unsafe { unload(server, name, false) })
}

pub(crate) unsafe extern "C" fn server_unload_model_and_dependents(
    server: *mut abi::Server,
    name: *const c_char,
) -> *mut abi::Error {
    // SAFETY: the caller gives a terminated text.
    call::answer("TRITONSERVER_ServerUnloadModelAndDependents", || unsafe {
        unload(server, name, true)
    })
}

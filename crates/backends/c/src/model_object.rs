//! A model as its library sees it: `TRITONBACKEND_Model`.

use std::{
    ffi::{CString, c_char, c_void},
    path::Path,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicPtr, Ordering},
    },
};

use galatea_backend::ServerAccess;
use galatea_config::ModelConfig;
use galatea_triton_c::{
    Kind, Registered, Table, abi, call,
    objects::{buffer_attributes, messages},
    text,
};
use galatea_types::{Error, LockExt as _, Result};

use crate::{backend_object::OpenBackend, server::ServerObject};

const KIND: Kind = Kind { number: 21, name: "TRITONBACKEND_Model" };
static MODELS: Table<abi::Model, ModelObject> = Table::new(KIND, 1 << 16);
/// The only form of configurations that the interface has.
const CONFIG_VERSION: u32 = 1;
/// Most kinds of memory in a report.
const MOST_REPORTED: usize = 1024;

/// The data of a model that its library reads.
pub(crate) struct ModelObject {
    name: CString,
    version: i64,
    /// Folder of the model.
    repository: CString,
    backend: Weak<OpenBackend>,
    server: Registered<abi::Server, ServerObject>,
    state: AtomicPtr<c_void>,
    /// The configuration as JSON.
    config: Mutex<String>,
    /// True while the library may complete the configuration.
    completes: bool,
    /// The configuration that the library set.
    completed: Mutex<Option<String>>,
    /// Names of the model's tensors, with a zero byte at the end.
    names: Vec<TensorName>,
}

/// A name in both forms.
struct TensorName {
    name: Arc<str>,
    text: CString,
}

/// The parts of a model.
pub(crate) struct ModelParts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: i64,
    /// Its folder.
    pub folder: &'a Path,
    /// Its configuration as JSON.
    pub config: String,
    /// The checked configuration, unless the library is to complete it.
    pub checked: Option<&'a ModelConfig>,
    /// The server around it.
    pub server: ServerAccess,
}

/// A model whose library was told to load it, and is told to unload it when this is dropped.
pub(crate) struct LoadedModel {
    pub backend: Arc<OpenBackend>,
    object: Arc<ModelObject>,
    registered: Registered<abi::Model, ModelObject>,
}

impl LoadedModel {
    /// Lets the library load a model.
    ///
    /// # Errors
    /// Those of the library.
    pub fn load(backend: &Arc<OpenBackend>, parts: ModelParts<'_>) -> Result<Self> {
        let tensors = parts.checked.into_iter().flat_map(|config| {
            config.inputs().iter().chain(config.outputs()).chain(config.model_inputs())
        });
        let named = |name: &Arc<str>| TensorName { name: name.clone(), text: text::to_c(name) };
        let object = Arc::new(ModelObject {
            name: text::to_c(parts.name),
            version: parts.version,
            repository: text::to_c(&parts.folder.to_string_lossy()),
            backend: Arc::downgrade(backend),
            server: ServerObject(parts.server).register()?,
            state: AtomicPtr::default(),
            config: Mutex::new(parts.config),
            completes: parts.checked.is_none(),
            completed: Mutex::default(),
            names: tensors.map(|spec| named(&spec.name)).collect(),
        });
        let registered = MODELS.register(object.clone())?;
        backend.hooks.initialize_model(registered.handle())?;
        Ok(Self { backend: backend.clone(), object, registered })
    }

    pub fn handle(&self) -> *mut abi::Model {
        self.registered.handle()
    }

    pub fn object(&self) -> &Arc<ModelObject> {
        &self.object
    }

    /// Returns the configuration that the library set, as JSON.
    pub fn take_completed(&self) -> Option<String> {
        self.object.completed.lock_unpoisoned().take()
    }
}

impl Drop for LoadedModel {
    fn drop(&mut self) {
        if let Err(error) = self.backend.hooks.finalize_model(self.handle()) {
            let name = self.object.name.to_string_lossy();
            log::error!("model '{name}' did not end cleanly: {error}");
        }
    }
}

impl ModelObject {
    /// Returns a declared name as a text that lives as long as the model.
    pub fn text_of(&self, name: &str) -> Option<&CString> {
        self.names.iter().find(|named| *named.name == *name).map(|named| &named.text)
    }

    /// Returns the shared form of a declared name, or a new one.
    pub fn name_of(&self, name: &str) -> Arc<str> {
        let known = self.names.iter().find(|named| *named.name == *name);
        known.map_or_else(|| name.into(), |named| named.name.clone())
    }
}

pub(crate) unsafe extern "C" fn model_name(
    model: *mut abi::Model,
    name: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelName", || {
        // SAFETY: the caller gives a place for the result; the text lives with the model.
        unsafe { call::put(name, MODELS.get(model)?.name.as_ptr(), "the name") }
    })
}

pub(crate) unsafe extern "C" fn model_version(
    model: *mut abi::Model,
    version: *mut u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelVersion", || {
        let number = u64::try_from(MODELS.get(model)?.version).unwrap_or(0);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(version, number, "the version") }
    })
}

pub(crate) unsafe extern "C" fn model_repository(
    model: *mut abi::Model,
    kind: *mut u32,
    location: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelRepository", || {
        let model = MODELS.get(model)?;
        // SAFETY: the caller gives places for the results; the text lives with the model.
        unsafe {
            call::put(kind, crate::FILE_SYSTEM, "the kind")?;
            call::put(location, model.repository.as_ptr(), "the location")
        }
    })
}

fn check_config_version(version: u32) -> Result<()> {
    match version {
        CONFIG_VERSION => Ok(()),
        other => Err(Error::unsupported(format!(
            "model configurations have version {CONFIG_VERSION} only, not {other}"
        ))),
    }
}

/// Gives a new message each time, which the library deletes.
pub(crate) unsafe extern "C" fn model_config(
    model: *mut abi::Model,
    version: u32,
    config: *mut *mut abi::Message,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelConfig", || {
        let model = MODELS.get(model)?;
        check_config_version(version)?;
        let text = model.config.lock_unpoisoned().clone();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(config, messages::give(&text)?, "the configuration") }
    })
}

pub(crate) unsafe extern "C" fn model_auto_complete(
    model: *mut abi::Model,
    completes: *mut bool,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelAutoCompleteConfig", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(completes, MODELS.get(model)?.completes, "the result") }
    })
}

/// Copies the message, which stays the library's.
pub(crate) unsafe extern "C" fn model_set_config(
    model: *mut abi::Model,
    version: u32,
    config: *mut abi::Message,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelSetConfig", || {
        let model = MODELS.get(model)?;
        check_config_version(version)?;
        if !model.completes {
            return Err(Error::unsupported(
                "the configuration of a model can be set only while it is completed",
            ));
        }
        let text = messages::read(config)?;
        galatea_config::parse_json(&text)?;
        model.config.lock_unpoisoned().clone_from(&text);
        *model.completed.lock_unpoisoned() = Some(text);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn model_server(
    model: *mut abi::Model,
    server: *mut *mut abi::Server,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelServer", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(server, MODELS.get(model)?.server.handle(), "the server") }
    })
}

pub(crate) unsafe extern "C" fn model_backend(
    model: *mut abi::Model,
    backend: *mut *mut abi::Backend,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelBackend", || {
        let of_model = MODELS.get(model)?.backend.upgrade();
        let of_model = of_model.ok_or_else(|| Error::unavailable("the backend has ended"))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(backend, of_model.handle(), "the backend") }
    })
}

pub(crate) unsafe extern "C" fn model_state(
    model: *mut abi::Model,
    state: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelState", || {
        let held = MODELS.get(model)?.state.load(Ordering::Acquire);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(state, held, "the state") }
    })
}

pub(crate) unsafe extern "C" fn model_set_state(
    model: *mut abi::Model,
    state: *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelSetState", || {
        MODELS.get(model)?.state.store(state, Ordering::Release);
        Ok(())
    })
}

/// Logs the memory that a model or an instance reports.
///
/// # Safety
/// `usage` are `count` handles.
pub(crate) unsafe fn log_memory_usage(
    of: &str,
    usage: *const *const abi::BufferAttributes,
    count: u32,
) -> Result<()> {
    // SAFETY: the caller's word.
    let listed = unsafe { call::list(usage, count.into(), MOST_REPORTED, "attributes") }?;
    for &handle in listed {
        let attributes = buffer_attributes::read(handle)?;
        log::debug!("{of} reports its memory: {attributes:?}");
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn model_report_memory_usage(
    model: *mut abi::Model,
    usage: *const *const abi::BufferAttributes,
    count: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelReportMemoryUsage", || {
        let model = MODELS.get(model)?;
        // SAFETY: the caller gives that many handles.
        unsafe { log_memory_usage(&model.name.to_string_lossy(), usage, count) }
    })
}

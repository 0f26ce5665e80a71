//! The backend as its library sees it: `TRITONBACKEND_Backend`.

use std::{
    collections::BTreeMap,
    ffi::{CString, c_char, c_void},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicPtr, Ordering},
    },
};

use galatea_config::PreferredGroup;
use galatea_triton_c::{
    Kind, Library, LibraryKind, Registered, Table, abi, call, objects::messages::OwnMessage, text,
};
use galatea_types::{Error, Result};
use serde_json::json;

use crate::{attributes, hooks::Hooks, memory};

const KIND: Kind = Kind { number: 20, name: "TRITONBACKEND_Backend" };
/// Settings of this server that Triton does not have: which library runs models, in which process, on which threads.
const OWN_LIBRARY: &str = "library";
const OWN_ISOLATION: &str = "isolation";
const OWN_IN_PLACE: &str = "in_place";
/// The functions that ask the server for work begin with this.
const SERVER_CALLS: &str = "TRITONSERVER_Server";
/// The policy of Triton's default: an instance executes until it can take the next requests.
const BLOCKING: u32 = 0;
static BACKENDS: Table<abi::Backend, BackendObject> = Table::new(KIND, 1 << 10);

/// The data of a backend that its library reads.
pub(crate) struct BackendObject {
    name: CString,
    /// Folder of the library.
    artifacts: CString,
    config: OwnMessage,
    memory: memory::Manager,
    state: AtomicPtr<c_void>,
}

/// A backend whose library is open and initialised. The library is told to finish when this is dropped.
pub(crate) struct OpenBackend {
    pub hooks: Hooks,
    /// The name of the library's file.
    pub path: PathBuf,
    object: Registered<abi::Backend, BackendObject>,
    /// The instance groups for models whose configuration has none, the most preferred first.
    pub preferred_groups: Vec<PreferredGroup>,
    /// True if instances may execute on any thread.
    pub executes_on_any_thread: bool,
    _library: Library,
}

/// The data that a backend is opened with.
pub(crate) struct BackendArguments<'a> {
    /// The name of the backend.
    pub name: &'a str,
    /// `--backend-directory`, or its default.
    pub directory: &'a Path,
    /// The settings of the command line.
    pub settings: &'a BTreeMap<String, String>,
    /// True if backends complete configurations.
    pub completes_config: bool,
}

impl OpenBackend {
    /// Opens the library at `path`, which is of this kind, and initialises the backend.
    ///
    /// # Errors
    /// The file is no backend for this server, or its initialisation fails.
    pub fn open(
        path: &Path,
        arguments: &BackendArguments<'_>,
        kind: &LibraryKind,
    ) -> Result<Arc<Self>> {
        let library = kind.open(path)?;
        let hooks = Hooks::find(&library)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let object = BACKENDS.register(Arc::new(BackendObject {
            name: text::to_c(arguments.name),
            artifacts: text::to_c(&folder.to_string_lossy()),
            config: OwnMessage::new(&config_text(arguments))?,
            memory: memory::Manager::new()?,
            state: AtomicPtr::default(),
        }))?;
        let named = |error: Error| {
            let [major, minor] = abi::BACKEND_VERSION;
            let text = format!(
                "'{}' did not initialise (this server offers version {major}.{minor} of Triton's backend interface): {error}",
                path.display()
            );
            Error::new(error.code(), text)
        };
        hooks.initialize(object.handle()).map_err(named)?;
        let mut backend = Self {
            hooks,
            path: path.to_owned(),
            object,
            preferred_groups: Vec::new(),
            executes_on_any_thread: executes_on_any_thread(&library.file().called, arguments),
            _library: library,
        };
        backend.preferred_groups =
            attributes::read(&backend.hooks, backend.handle()).map_err(|error| {
                let text = format!("'{}' does not tell its attributes: {error}", path.display());
                Error::new(error.code(), text)
            })?;
        log::info!("opened backend '{}' from '{}'", arguments.name, path.display());
        Ok(Arc::new(backend))
    }

    pub fn handle(&self) -> *mut abi::Backend {
        self.object.handle()
    }
}

impl Drop for OpenBackend {
    fn drop(&mut self) {
        if let Err(error) = self.hooks.finalize(self.handle()) {
            log::error!("'{}' did not end cleanly: {error}", self.path.display());
        }
    }
}

/// Returns false for a library that calls functions that ask this server for work, to infer or to load a model, and if the settings
/// say so.
fn executes_on_any_thread(called: &[String], arguments: &BackendArguments<'_>) -> bool {
    let calls_server = called.iter().any(|function| function.starts_with(SERVER_CALLS));
    let is_refused = arguments.settings.get(OWN_IN_PLACE).is_some_and(|value| value == "false");
    !calls_server && !is_refused
}

/// Returns the text that Triton gives: all values are strings, and settings of the command line are beside its own.
fn config_text(arguments: &BackendArguments<'_>) -> String {
    let mut settings = BTreeMap::from([
        ("auto-complete-config".to_owned(), arguments.completes_config.to_string()),
        ("backend-directory".to_owned(), arguments.directory.display().to_string()),
        ("min-compute-capability".to_owned(), "6.000000".to_owned()),
        ("default-max-batch-size".to_owned(), "4".to_owned()),
    ]);
    let is_own =
        |name: &str| [OWN_LIBRARY, OWN_IN_PLACE].contains(&name) || name.starts_with(OWN_ISOLATION);
    let given = arguments.settings.iter().filter(|(name, _)| !is_own(name));
    settings.extend(given.map(|(name, value)| (name.clone(), value.clone())));
    json!({ "cmdline": settings }).to_string()
}

pub(crate) unsafe extern "C" fn version(major: *mut u32, minor: *mut u32) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ApiVersion", || {
        let [own_major, own_minor] = abi::BACKEND_VERSION;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(major, own_major, "the major version")?;
            call::put(minor, own_minor, "the minor version")
        }
    })
}

pub(crate) unsafe extern "C" fn backend_name(
    backend: *mut abi::Backend,
    name: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendName", || {
        // SAFETY: the caller gives a place for the result; the text lives with the backend.
        unsafe { call::put(name, BACKENDS.get(backend)?.name.as_ptr(), "the name") }
    })
}

pub(crate) unsafe extern "C" fn backend_config(
    backend: *mut abi::Backend,
    config: *mut *mut abi::Message,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendConfig", || {
        // SAFETY: the caller gives a place for the result; the message lives with the backend.
        unsafe { call::put(config, BACKENDS.get(backend)?.config.handle(), "the configuration") }
    })
}

pub(crate) unsafe extern "C" fn backend_artifacts(
    backend: *mut abi::Backend,
    kind: *mut u32,
    location: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendArtifacts", || {
        let backend = BACKENDS.get(backend)?;
        // SAFETY: the caller gives places for the results; the text lives with the backend.
        unsafe {
            call::put(kind, crate::FILE_SYSTEM, "the kind")?;
            call::put(location, backend.artifacts.as_ptr(), "the location")
        }
    })
}

pub(crate) unsafe extern "C" fn backend_memory_manager(
    backend: *mut abi::Backend,
    manager: *mut *mut abi::MemoryManager,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendMemoryManager", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(manager, BACKENDS.get(backend)?.memory.handle(), "the manager") }
    })
}

pub(crate) unsafe extern "C" fn backend_state(
    backend: *mut abi::Backend,
    state: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendState", || {
        let held = BACKENDS.get(backend)?.state.load(Ordering::Acquire);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(state, held, "the state") }
    })
}

pub(crate) unsafe extern "C" fn backend_set_state(
    backend: *mut abi::Backend,
    state: *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendSetState", || {
        BACKENDS.get(backend)?.state.store(state, Ordering::Release);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn backend_execution_policy(
    backend: *mut abi::Backend,
    policy: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendExecutionPolicy", || {
        BACKENDS.get(backend)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(policy, BLOCKING, "the policy") }
    })
}

/// Takes the default policy only. With the other one Triton executes one instance of a device at a time.
pub(crate) unsafe extern "C" fn backend_set_execution_policy(
    backend: *mut abi::Backend,
    policy: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_BackendSetExecutionPolicy", || {
        BACKENDS.get(backend)?;
        match policy {
            BLOCKING => Ok(()),
            _ => Err(Error::unsupported(
                "TRITONBACKEND_BackendSetExecutionPolicy: this server supports the policy BLOCKING only",
            )),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_texts_as_in_triton() {
        let settings = BTreeMap::from([
            ("default-max-batch-size".to_owned(), "8".to_owned()),
            ("shm-region-prefix-name".to_owned(), "x".to_owned()),
            ("library".to_owned(), "triton".to_owned()),
            ("isolation_timeout_seconds".to_owned(), "9".to_owned()),
            ("in_place".to_owned(), "false".to_owned()),
        ]);
        let arguments = BackendArguments {
            name: "python",
            directory: Path::new("/opt/tritonserver/backends"),
            settings: &settings,
            completes_config: true,
        };
        let expected = r#"{"cmdline":{"auto-complete-config":"true","backend-directory":"/opt/tritonserver/backends","default-max-batch-size":"8","min-compute-capability":"6.000000","shm-region-prefix-name":"x"}}"#;
        assert_eq!(config_text(&arguments), expected);
    }
}

//! Options of a session.

use std::{ffi::CString, os::unix::ffi::OsStrExt, path::Path, ptr, sync::Arc};

use galatea_division_faults::FaultDomain;
use galatea_types::{Error, Result};
use ort_sys::{ExecutionMode, GraphOptimizationLevel, OrtSessionOptions};

use super::{
    library::{Library, Owned, owned},
    threads,
};

pub(crate) struct SessionOptions {
    pub(super) library: Arc<Library>,
    options: Owned<OrtSessionOptions>,
    threads: ThreadSource,
    /// True if a provider or a library of operators may compute on threads of its own.
    has_foreign_threads: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadSource {
    Own,
    Global,
    /// ONNX Runtime makes the threads itself, because only then it can pin them to cores.
    Pinned,
}

/// Setting that names the cores to which threads are pinned.
const AFFINITIES: &str = "session.intra_op_thread_affinities";

impl SessionOptions {
    pub fn new(library: &Arc<Library>) -> Result<Self> {
        let mut options = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        library.check(unsafe { (library.api.CreateSessionOptions)(&mut options) })?;
        // SAFETY: made just now.
        let options = unsafe { owned(options, library.api.ReleaseSessionOptions) }?;
        let threads = ThreadSource::Own;
        Ok(Self { library: library.clone(), options, threads, has_foreign_threads: false })
    }

    pub(super) fn as_ptr(&self) -> *const OrtSessionOptions {
        self.options.as_ptr()
    }

    /// Returns the pointer for adding a provider.
    pub(super) fn for_provider(&mut self) -> *mut OrtSessionOptions {
        self.has_foreign_threads = true;
        self.options.as_ptr()
    }

    /// Makes threads whose faults are known to be the session's, if that is possible. The result must live as long as the
    /// session.
    pub(super) fn watch_threads(&mut self) -> Result<Arc<FaultDomain>> {
        let faults = match self.threads {
            ThreadSource::Pinned => return Ok(FaultDomain::with_unknown_threads()),
            ThreadSource::Global => return Ok(self.library.global_faults.clone()),
            ThreadSource::Own if self.has_foreign_threads => FaultDomain::with_unknown_threads(),
            ThreadSource::Own => FaultDomain::new(),
        };
        let (api, options) = (self.library.api, self.options.as_ptr());
        let domain = threads::creation_options(&faults);
        // SAFETY: as in `intra_op_threads`; the functions are of the types that the C header asks for, and the session
        // holds the domain.
        unsafe {
            self.library.check((api.SessionOptionsSetCustomCreateThreadFn)(
                options,
                Some(threads::create),
            ))?;
            self.library
                .check((api.SessionOptionsSetCustomThreadCreationOptions)(options, domain))?;
            self.library
                .check((api.SessionOptionsSetCustomJoinThreadFn)(options, Some(threads::join)))?;
        }
        Ok(faults)
    }

    pub fn intra_op_threads(&mut self, count: i32) -> Result<()> {
        let set = self.library.api.SetIntraOpNumThreads;
        // SAFETY: the options are alive and borrowed exclusively, here and in every setter below.
        self.library.check(unsafe { set(self.options.as_ptr(), count) })
    }

    pub fn inter_op_threads(&mut self, count: i32) -> Result<()> {
        let set = self.library.api.SetInterOpNumThreads;
        // SAFETY: as in `intra_op_threads`.
        self.library.check(unsafe { set(self.options.as_ptr(), count) })
    }

    /// Uses the threads of the environment, which must have been opened with global threads.
    pub fn use_global_threads(&mut self) -> Result<()> {
        self.threads = ThreadSource::Global;
        let set = self.library.api.DisablePerSessionThreads;
        // SAFETY: as in `intra_op_threads`.
        self.library.check(unsafe { set(self.options.as_ptr()) })
    }

    pub fn execution_mode(&mut self, mode: ExecutionMode) -> Result<()> {
        let set = self.library.api.SetSessionExecutionMode;
        // SAFETY: as in `intra_op_threads`.
        self.library.check(unsafe { set(self.options.as_ptr(), mode) })
    }

    pub fn graph_level(&mut self, level: GraphOptimizationLevel) -> Result<()> {
        let set = self.library.api.SetSessionGraphOptimizationLevel;
        // SAFETY: as in `intra_op_threads`.
        self.library.check(unsafe { set(self.options.as_ptr(), level) })
    }

    pub fn memory_arena(&mut self, enabled: bool) -> Result<()> {
        let api = self.library.api;
        let set = if enabled { api.EnableCpuMemArena } else { api.DisableCpuMemArena };
        // SAFETY: as in `intra_op_threads`.
        self.library.check(unsafe { set(self.options.as_ptr()) })
    }

    pub fn memory_pattern(&mut self, enabled: bool) -> Result<()> {
        let api = self.library.api;
        let set = if enabled { api.EnableMemPattern } else { api.DisableMemPattern };
        // SAFETY: as in `intra_op_threads`.
        self.library.check(unsafe { set(self.options.as_ptr()) })
    }

    /// Adds a setting by ONNX Runtime's name, e.g. `session.intra_op.allow_spinning`.
    pub fn entry(&mut self, key: &str, value: &str) -> Result<()> {
        if key == AFFINITIES && self.threads == ThreadSource::Own {
            self.threads = ThreadSource::Pinned;
        }
        let (key, value) = (c_string(key)?, c_string(value)?);
        let set = self.library.api.AddSessionConfigEntry;
        // SAFETY: as in `intra_op_threads`; both strings are terminated and copied by the library.
        self.library.check(unsafe { set(self.options.as_ptr(), key.as_ptr(), value.as_ptr()) })
    }

    /// Loads a library of custom operators.
    pub fn custom_operators(&mut self, path: &Path) -> Result<()> {
        let path = c_path(path)?;
        self.has_foreign_threads = true;
        let register = self.library.api.RegisterCustomOpsLibrary_V2;
        // SAFETY: as in `intra_op_threads`; the library runs code its owner put into the repository.
        self.library
            .check(unsafe { register(self.options.as_ptr(), path.as_ptr()) })
            .map_err(explain_missing_library)
    }
}

/// Adds advice if a library of operators needs another one: onnxruntime-extensions needs that of Python.
fn explain_missing_library(error: Error) -> Error {
    const OF_THE_LOADER: &str = ": cannot open shared object file";
    if !error.message().contains(OF_THE_LOADER) {
        return error;
    }
    let text = format!(
        "{error} (the library named before '{OF_THE_LOADER}' is not where the loader looks: add its folder to \
         LD_LIBRARY_PATH before the server starts; for libpython that is the folder `python3 -c \"import sysconfig; \
         print(sysconfig.get_config_var('LIBDIR'))\"` prints)"
    );
    Error::new(error.code(), text).with_source(error)
}

pub(super) fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|cause| {
        Error::invalid_arg(format!("'{text:?}' holds a zero byte")).with_source(cause)
    })
}

pub(super) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|cause| {
        Error::invalid_arg(format!("path '{}' holds a zero byte", path.display()))
            .with_source(cause)
    })
}

//! The opened library: its functions, its environment, its errors.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::Path,
    ptr::{self, NonNull},
    sync::{Arc, OnceLock},
};

use galatea_division_faults::FaultDomain;
use galatea_types::{Error, Result};
use ort_sys::{OrtAllocator, OrtApi, OrtApiBase, OrtEnv, OrtLoggingLevel, OrtMemoryInfo};

use super::{provider_kind::ProviderKind, threads};

/// The oldest C interface used here; every later library still offers it.
const API_VERSION: u32 = 17;

/// Threads shared by all sessions in place of each session's own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GlobalThreads {
    /// Number of threads. 0: ONNX Runtime's choice.
    pub intra_op: c_int,
    pub inter_op: c_int,
}

/// An opened ONNX Runtime and its process-wide environment. It is never closed: its threads and statics would outlive their
/// code.
pub(crate) struct Library {
    pub(super) api: &'static OrtApi,
    pub(super) env: NonNull<OrtEnv>,
    pub(super) cpu_memory: NonNull<OrtMemoryInfo>,
    pub(super) allocator: NonNull<OrtAllocator>,
    /// Version, e.g. `1.31.1`.
    pub version: String,
    /// Faults of the threads that sessions may share.
    pub(super) global_faults: Arc<FaultDomain>,
    /// Result of trying CUDA. It is cached because trying opens large libraries.
    cuda: OnceLock<Result<()>>,
}

// SAFETY: the function table is constant; the environment, the CPU memory description and the default
// allocator are documented to be usable from any thread at once.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    pub fn open(path: &Path, global_threads: Option<GlobalThreads>) -> Result<Arc<Self>> {
        let base = open_base(path)?;
        // SAFETY: the table of two functions that OrtGetApiBase returns is static.
        let version = unsafe { CStr::from_ptr((base.GetVersionString)()) };
        let version = version.to_string_lossy().into_owned();
        // If a library is too old for an interface, it prints a line on the terminal, hence the check first.
        if minor_version(&version).is_none_or(|minor| minor < API_VERSION) {
            return Err(bad_version(path, &version));
        }
        // SAFETY: as above; the pointer is null or points to a static table.
        let Some(api) = (unsafe { (base.GetApi)(API_VERSION).as_ref() }) else {
            return Err(bad_version(path, &version));
        };
        galatea_division_faults::install();
        let global_faults = FaultDomain::new();
        let env = create_env(api, global_threads, &global_faults)?;
        let mut cpu_memory = ptr::null_mut();
        // SAFETY: the out pointer is valid; the result is checked before it is used.
        check(api, unsafe {
            (api.CreateCpuMemoryInfo)(
                ort_sys::OrtAllocatorType::OrtDeviceAllocator,
                ort_sys::OrtMemType::OrtMemTypeDefault,
                &mut cpu_memory,
            )
        })?;
        let mut allocator = ptr::null_mut();
        // SAFETY: as above; the default allocator is owned by the library and never freed.
        check(api, unsafe { (api.GetAllocatorWithDefaultOptions)(&mut allocator) })?;
        let (cpu_memory, allocator) = (non_null(cpu_memory)?, non_null(allocator)?);
        let cuda = OnceLock::new();
        Ok(Arc::new(Self { api, env, cpu_memory, allocator, version, global_faults, cuda }))
    }

    /// Checks that sessions can run on NVIDIA's GPUs. It tries once.
    ///
    /// # Errors
    /// The reason against it, as a text that follows the library's name.
    pub fn cuda(self: &Arc<Self>) -> Result<()> {
        let try_it = || {
            self.try_provider(ProviderKind::Cuda).inspect_err(|error| {
                let version = &self.version;
                log::warn!("GPUs are not used for ONNX models: ONNX Runtime {version} {error}");
            })
        };
        self.cuda.get_or_init(try_it).clone()
    }

    /// Turns a status into a result and frees it.
    pub fn check(&self, status: ort_sys::OrtStatusPtr) -> Result<()> {
        check(self.api, status)
    }

    /// Copies a text the library allocated, and frees it.
    pub fn take_string(&self, text: *mut c_char) -> Result<CString> {
        let text = non_null(text)?;
        // SAFETY: `text` is a terminated string the caller got from the default allocator.
        let copy = unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned();
        // SAFETY: it came from this allocator and is not used after.
        self.check(unsafe {
            (self.api.AllocatorFree)(self.allocator.as_ptr(), text.as_ptr().cast())
        })?;
        Ok(copy)
    }
}

pub(crate) fn non_null<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(null)
}

fn null() -> Error {
    Error::internal("ONNX Runtime returned a null pointer")
}

pub(super) type Release<T> = unsafe extern "system" fn(*mut T);
pub(super) type Owned<T> = galatea_native_library::Owned<T, Release<T>>;

/// Takes over an object that the library returned.
///
/// # Safety
/// Those of [`Owned::new`].
pub(super) unsafe fn owned<T>(object: *mut T, release: Release<T>) -> Result<Owned<T>> {
    // SAFETY: the caller's word.
    unsafe { Owned::new(object, release) }.ok_or_else(null)
}

fn minor_version(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

fn bad_version(path: &Path, found: &str) -> Error {
    Error::internal(format!(
        "ONNX Runtime library '{}' is version {found}; 1.{API_VERSION} or newer is needed",
        path.display()
    ))
}

fn open_base(path: &Path) -> Result<&'static OrtApiBase> {
    const SYMBOL: &str = "OrtGetApiBase";
    let missing = || {
        let path = path.display();
        Error::internal(format!(
            "'{path}' is not an ONNX Runtime library: symbol '{SYMBOL}' is missing"
        ))
    };
    let handle = galatea_native_library::open(path, "ONNX Runtime library")?;
    // SAFETY: the type is the one of the public C header.
    let get_base = unsafe { handle.get::<unsafe extern "C" fn() -> *const OrtApiBase>(SYMBOL) }
        .map(|s| *s)
        .map_err(|_| missing())?;
    std::mem::forget(handle);
    // SAFETY: the library stays open for the life of the process, and the table it returns is static.
    unsafe { get_base().as_ref() }.ok_or_else(missing)
}

fn create_env(
    api: &'static OrtApi,
    threads: Option<GlobalThreads>,
    faults: &Arc<FaultDomain>,
) -> Result<NonNull<OrtEnv>> {
    let mut env = ptr::null_mut();
    let level = OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING;
    let name = c"galatea".as_ptr();
    match threads {
        // SAFETY: all pointers are valid for the call; the logger is a plain function without state.
        None => check(api, unsafe {
            (api.CreateEnvWithCustomLogger)(write_log, ptr::null_mut(), level, name, &mut env)
        })?,
        Some(threads) => {
            let mut options = ptr::null_mut();
            // SAFETY: the options are created, filled, used and released within this block; each
            // call gets pointers that are valid for it. The library is never closed, and holds the domain.
            unsafe {
                check(api, (api.CreateThreadingOptions)(&mut options))?;
                let made = check(api, (api.SetGlobalIntraOpNumThreads)(options, threads.intra_op))
                    .and_then(|()| {
                        check(api, (api.SetGlobalInterOpNumThreads)(options, threads.inter_op))
                    })
                    .and_then(|()| {
                        let create = Some(threads::create as _);
                        check(api, (api.SetGlobalCustomCreateThreadFn)(options, create))
                    })
                    .and_then(|()| {
                        let domain = threads::creation_options(faults);
                        check(api, (api.SetGlobalCustomThreadCreationOptions)(options, domain))
                    })
                    .and_then(|()| {
                        let join = Some(threads::join as _);
                        check(api, (api.SetGlobalCustomJoinThreadFn)(options, join))
                    })
                    .and_then(|()| {
                        let create = api.CreateEnvWithCustomLoggerAndGlobalThreadPools;
                        let logger = ptr::null_mut();
                        check(api, create(write_log, logger, level, name, options, &mut env))
                    });
                (api.ReleaseThreadingOptions)(options);
                made?;
            }
        }
    }
    non_null(env)
}

/// Turns a status into a result in Triton's form: `onnx runtime error 2: ...`, always an internal error.
pub(crate) fn check(api: &OrtApi, status: ort_sys::OrtStatusPtr) -> Result<()> {
    let Some(status) = NonNull::new(status.0) else { return Ok(()) };
    // SAFETY: the status is not null, is read while it lives and released once. The code is read as a
    // plain number, because a newer library may know codes that the enum does not.
    let message = unsafe {
        type GetApiFn<T> = unsafe extern "system" fn(*const ort_sys::OrtStatus) -> T;
        let get_code = std::mem::transmute::<GetApiFn<ort_sys::OrtErrorCode>, GetApiFn<c_int>>(
            api.GetErrorCode,
        );
        let code = get_code(status.as_ptr());
        let text = CStr::from_ptr((api.GetErrorMessage)(status.as_ptr())).to_string_lossy();
        let message = format!("onnx runtime error {code}: {text}");
        (api.ReleaseStatus)(status.as_ptr());
        message
    };
    Err(Error::internal(message))
}

/// Writes the library's messages to the program's log.
unsafe extern "system" fn write_log(
    _param: *mut c_void,
    severity: OrtLoggingLevel,
    _category: *const c_char,
    _id: *const c_char,
    _location: *const c_char,
    message: *const c_char,
) {
    if message.is_null() {
        return;
    }
    // SAFETY: the library passes a terminated string that lives during the call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    let level = match severity {
        OrtLoggingLevel::ORT_LOGGING_LEVEL_VERBOSE => log::Level::Debug,
        OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO => log::Level::Info,
        OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING => log::Level::Warn,
        _ => log::Level::Error,
    };
    log::log!(level, "onnxruntime: {message}");
}

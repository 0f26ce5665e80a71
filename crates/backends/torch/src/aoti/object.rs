//! The shared object in a package, and the library functions that its code calls.

use std::{ffi::CStr, path::Path, ptr};

use galatea_native_library::{Handle, reason};
use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

use super::functions::{
    LAST_ERROR, LAST_EXCEPTION, LastError, LastException, ModelFunctions, TensorFunctions,
};

/// The part of libtorch that compiled code uses.
#[derive(Clone)]
pub(crate) struct Runtime {
    pub(super) tensors: TensorFunctions,
    last_exception: Option<LastException>,
    pub(super) version: String,
}

impl Runtime {
    /// # Safety
    /// Those of [`TensorFunctions::find`].
    pub unsafe fn find(handle: &Handle, version: &str) -> Result<Self, &'static str> {
        // SAFETY: the caller's word; where the second function is, its type is this.
        let (tensors, last_exception) = unsafe {
            (TensorFunctions::find(handle)?, handle.get(LAST_EXCEPTION).ok().map(|f| *f))
        };
        Ok(Self { tensors, last_exception, version: version.to_owned() })
    }

    /// Returns libtorch's last exception on this thread.
    pub(super) fn last_exception(&self) -> Option<String> {
        let last_exception = self.last_exception?;
        // SAFETY: takes nothing; the text is read before the next call on this thread.
        unsafe { text(last_exception()) }
    }
}

/// The compiled library of a package, mapped until this is dropped.
pub(super) struct Object {
    pub functions: ModelFunctions,
    last_error: Option<LastError>,
    _handle: Handle,
}

impl Object {
    pub fn open(path: &Path, version: &str) -> Result<Self, String> {
        // Now: a function that another version of libtorch lacks must be found before it is called. Locally: every model has
        // functions of the same names. libtorch is found by its name among the open libraries.
        // SAFETY: opening runs the library's initialisers; the user chose this model to be run.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|e| explain(path, version, &reason(&e)))?;
        // SAFETY: the names are AOTInductor's alone, whose types do not change; the handle is kept.
        let (functions, last_error) = unsafe {
            let functions = ModelFunctions::find(&handle).map_err(missing)?;
            (functions, handle.get::<LastError>(LAST_ERROR).ok().map(|f| *f))
        };
        Ok(Self { functions, last_error, _handle: handle })
    }

    /// Returns the reason why the last call failed, if it is known: the last error of the model and that of libtorch.
    pub fn check(&self, runtime: &Runtime, status: i32) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let said = self.last_error().into_iter().chain(runtime.last_exception());
        let said: Vec<String> = said.collect();
        if said.is_empty() {
            return Err("the compiled code failed; the server's stderr has the reason".to_owned());
        }
        Err(said.join("; "))
    }

    fn last_error(&self) -> Option<String> {
        let mut message = ptr::null();
        // SAFETY: the place for the result is valid; the text is read before the next call on this thread.
        unsafe {
            self.last_error?(&mut message);
            text(message)
        }
    }
}

/// # Safety
/// Null, or a terminated text that lives for the call.
unsafe fn text(text: *const std::ffi::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's word.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn missing(function: &str) -> String {
    format!("its code is not an AOTInductor model: function '{function}' is missing")
}

fn explain(path: &Path, version: &str, reason: &str) -> String {
    if let Some((_, symbol)) = reason.split_once("undefined symbol: ") {
        let symbol = symbol.split([',', ' ']).next().unwrap_or(symbol);
        return format!(
            "its code calls '{symbol}', which PyTorch {version} does not have: it was compiled by another version; compile \
             it with PyTorch {version}, or serve it with the version that compiled it (--libtorch names its folder)"
        );
    }
    if reason.contains("failed to map segment") {
        let folder = path.parent().unwrap_or(path).display();
        return format!(
            "its code cannot be mapped from '{folder}': that folder's file system forbids it (noexec), name another one \
             with TMPDIR"
        );
    }
    format!("its code cannot be opened with PyTorch {version}: {reason}")
}

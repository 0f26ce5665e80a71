//! The opened library: its functions and its version.

use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr::{self, NonNull},
    sync::Arc,
};

use galatea_division_faults::FaultDomain;
use galatea_native_library::Owned;
use galatea_types::{Error, Result};

use super::{
    functions::{Functions, OK, Status, Version},
    texts,
};

/// An opened OpenVINO. It is never closed: its threads and statics would outlive their code.
pub(crate) struct Library {
    pub(super) functions: Functions,
    /// Version, e.g. `2026.4.1`.
    pub version: String,
    /// True if texts in its tensors can be read.
    pub(super) has_texts: bool,
    /// Faults of all runs: all models share the threads that compute.
    pub faults: Arc<FaultDomain>,
}

impl Library {
    pub fn open(path: &Path) -> Result<Arc<Self>> {
        galatea_division_faults::install();
        let functions = open_functions(path)?;
        let version = version(&functions);
        let faults = FaultDomain::with_unknown_threads();
        let has_texts = texts::have_known_form(&functions);
        Ok(Arc::new(Self { functions, version, has_texts, faults }))
    }

    /// Turns a status into a result.
    pub(super) fn check(&self, status: Status) -> Result<()> {
        match status {
            OK => Ok(()),
            status => Err(Error::internal(self.functions.text_of(status))),
        }
    }

    /// Takes over a terminated text that the library allocated.
    pub(super) fn take_text(&self, text: *mut std::ffi::c_char) -> Result<String> {
        let text = non_null(text)?;
        // SAFETY: terminated, ours alone, freed once and not used after.
        unsafe {
            let copy = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
            (self.functions.free_text)(text.as_ptr());
            Ok(copy)
        }
    }
}

pub(super) fn non_null<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(null)
}

/// Takes over an object that the library returned.
///
/// # Safety
/// Those of [`Owned::new`].
pub(super) unsafe fn owned<T>(
    object: *mut T,
    release: unsafe extern "C" fn(*mut T),
) -> Result<Owned<T>> {
    // SAFETY: the caller's word.
    unsafe { Owned::new(object, release) }.ok_or_else(null)
}

fn null() -> Error {
    Error::internal("OpenVINO returned a null pointer")
}

pub(super) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| Error::invalid_arg(format!("the path '{}' holds a zero byte", path.display())))
}

pub(super) fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid_arg(format!("{text:?} holds a zero byte")))
}

fn open_functions(path: &Path) -> Result<Functions> {
    let handle = galatea_native_library::open(path, "OpenVINO library")?;
    // SAFETY: the handle is kept open below; the types are those of the public C headers.
    let functions = unsafe { Functions::find(&handle) }.map_err(|symbol| {
        Error::internal(format!(
            "'{}' is not a usable OpenVINO library: function '{symbol}' is missing; the C library of OpenVINO 2023.1 \
             or newer is needed (libopenvino_c.so), `galatea runtime install openvino` fetches one",
            path.display()
        ))
    })?;
    std::mem::forget(handle);
    Ok(functions)
}

/// Returns the number in front of the build's name, `2026.4.1-22982-...`.
fn version(functions: &Functions) -> String {
    let mut version = Version { build_number: ptr::null(), description: ptr::null() };
    // SAFETY: the place is valid; the text is read while it lives, and freed once.
    unsafe {
        if (functions.version)(&mut version) != OK || version.build_number.is_null() {
            return "of an unknown version".to_owned();
        }
        let text = CStr::from_ptr(version.build_number).to_string_lossy().into_owned();
        (functions.free_version)(&mut version);
        text.split('-').next().unwrap_or_default().to_owned()
    }
}

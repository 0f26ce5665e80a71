//! The opened library: its functions, its errors.

use std::{
    ffi::{CStr, c_int},
    path::Path,
    ptr::NonNull,
    sync::Arc,
};

use galatea_division_faults::FaultDomain;
use galatea_native_library::{Owned, open};
use galatea_types::{Code, Error, Result};

use super::functions::{Functions, RawStatus};

/// The part that the library needs; packages contain it beside the library.
const FRAMEWORK: &str = "libtensorflow_framework.so.2";

/// An opened TensorFlow. It is never closed: its threads and statics would outlive their code.
pub(crate) struct Library {
    pub(super) functions: Functions,
    /// Version, e.g. `2.21.0`.
    pub version: String,
    pub faults: Arc<FaultDomain>,
}

impl Library {
    pub fn open(path: &Path) -> Result<Arc<Self>> {
        let functions = find_functions(path)?;
        // SAFETY: the function returns a static text.
        let version = unsafe { CStr::from_ptr((functions.version)()) };
        let version = version.to_string_lossy().into_owned();
        if !is_new_enough(&version) {
            return Err(Error::internal(format!(
                "TensorFlow library '{}' is version {version}; 2.5 or newer is needed",
                path.display()
            )));
        }
        galatea_division_faults::install();
        // TensorFlow makes its threads itself.
        let faults = FaultDomain::with_unknown_threads();
        Ok(Arc::new(Self { functions, version, faults }))
    }

    /// Calls `call` with a status to report to, and turns the status into a result.
    pub(super) fn checked<T>(&self, call: impl FnOnce(*mut RawStatus) -> T) -> Result<T> {
        // SAFETY: makes an object that is this function's alone.
        let status = unsafe { owned((self.functions.new_status)(), self.functions.delete_status) }?;
        let result = call(status.as_ptr());
        // SAFETY: the status is alive, its text lives as long as it does.
        unsafe {
            match (self.functions.code)(status.as_ptr()) {
                0 => Ok(result),
                code => {
                    let text = CStr::from_ptr((self.functions.message)(status.as_ptr()));
                    Err(Error::new(code_of(code), readable(&text.to_string_lossy())))
                }
            }
        }
    }
}

/// Returns the code of an error. Triton gives all errors of the library one code. Here wrong requests and lack of memory
/// have codes of their own.
fn code_of(code: c_int) -> Code {
    match code {
        3 | 11 => Code::InvalidArg,
        8 => Code::Exhausted,
        12 => Code::Unsupported,
        _ => Code::Internal,
    }
}

/// Most characters of an error: those of graphs may name hundreds of nodes.
const LONGEST_TEXT: usize = 2_000;

/// Removes the traces of the Python program that made the model.
fn readable(text: &str) -> String {
    let end = text.find("\n\nOriginal stack trace").unwrap_or(text.len());
    let lines = text.get(..end).unwrap_or(text).lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let joined = lines.join("; ");
    match joined.char_indices().nth(LONGEST_TEXT) {
        Some((cut, _)) => format!("{}...", joined.get(..cut).unwrap_or_default()),
        None => joined,
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
    Error::internal("TensorFlow returned a null pointer")
}

/// Checks the version. Texts have one form since 2.4, and 2.5 has the last function that is used here.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(2), Some(5))
}

fn find_functions(path: &Path) -> Result<Functions> {
    const TITLE: &str = "TensorFlow library";
    // The library finds the framework by its name if it is open already, wherever both lie.
    let framework = path.with_file_name(FRAMEWORK);
    if framework.is_file() && framework != path {
        std::mem::forget(open(&framework, TITLE)?);
    }
    let handle = open(path, TITLE)?;
    // SAFETY: a library that has all these names is TensorFlow, or pretends to be at the user's wish.
    let functions = unsafe { Functions::find(&handle) };
    std::mem::forget(handle);
    functions.map_err(|symbol| {
        Error::internal(format!(
            "'{}' is not a TensorFlow library that can run models: symbol '{symbol}' is missing; name the file \
             libtensorflow_cc.so.2 of a Python package of TensorFlow, or libtensorflow.so.2",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, expected) in [
            ("2.21.0", true),
            ("2.5.0-rc1", true),
            ("2.4.4", false),
            ("1.15.5", false),
            ("3.0", true),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }

    #[test]
    fn errors_are_one_line_without_stack_traces() {
        assert_eq!(
            readable("a\n\t [[{{node x}}]]\n\nOriginal stack trace for 'y':\n z"),
            "a; [[{{node x}}]]"
        );
        assert_eq!(readable(&"ä".repeat(3000)).chars().count(), LONGEST_TEXT + 3);
    }

    #[test]
    fn a_file_that_is_not_a_library_is_refused_by_name() {
        let error = Library::open(Path::new("/proc/self/maps")).err().expect("no library");
        assert!(
            error.message().starts_with("unable to open TensorFlow library '/proc/self/maps': ")
        );
    }
}

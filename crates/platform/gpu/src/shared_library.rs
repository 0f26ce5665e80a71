//! A library that may be missing, opened at run time.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::GpuError;

/// An opened library. It is never closed: drivers have threads and statics that would outlive their code.
pub(crate) struct SharedLibrary {
    name: &'static str,
    handle: std::mem::ManuallyDrop<Library>,
}

impl SharedLibrary {
    /// # Safety
    /// Opening runs the library's initialisers: `name` must be one that is meant to be run here.
    pub unsafe fn open(name: &'static str) -> Result<Self, GpuError> {
        // SAFETY: the caller answers for the library.
        let handle = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|e| GpuError::Open(name, reason(&e)))?;
        Ok(Self { name, handle: std::mem::ManuallyDrop::new(handle) })
    }

    /// # Safety
    /// `F` must be the type of that function.
    pub unsafe fn function<F: Copy>(&self, symbol: &'static str) -> Result<F, GpuError> {
        // SAFETY: the caller answers for the type; the library stays open, so the address stays good.
        let found = unsafe { self.handle.get::<F>(symbol) };
        found.map(|f| *f).map_err(|_| GpuError::MissingSymbol(self.name, symbol))
    }
}

/// Returns the loader's text: the error itself says only that loading failed.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_and_a_missing_function_are_different_errors() {
        // SAFETY: there is no such library.
        let error = unsafe { SharedLibrary::open("libgalatea-none.so.9") }.err().expect("missing");
        assert!(matches!(error, GpuError::Open(..)));
        assert!(
            error.to_string().starts_with("unable to open 'libgalatea-none.so.9': "),
            "{error}"
        );
        assert!(error.to_string().contains("No such file"), "{error}");
        // SAFETY: the C library is in every process already.
        let libc = unsafe { SharedLibrary::open("libc.so.6") }.expect("the C library");
        // SAFETY: the type of getpid.
        let getpid = unsafe { libc.function::<extern "C" fn() -> i32>("getpid") };
        assert_eq!(getpid.expect("a function")().unsigned_abs(), std::process::id());
        // SAFETY: never called.
        let error = unsafe { libc.function::<extern "C" fn()>("cuInit") }.expect_err("no driver");
        assert_eq!(error.to_string(), "'libc.so.6' has no function 'cuInit'");
    }
}

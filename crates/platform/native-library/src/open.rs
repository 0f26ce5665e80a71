//! Opens libraries and finds their functions.

use std::{ffi::c_int, path::Path};

use galatea_types::{Error, Result};
pub use libloading::os::unix::Library as Handle;
use libloading::os::unix::{RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};

/// Opens the library at `path`, which errors call `title`. Its initialisers run: the user chose it.
///
/// # Errors
/// The path, and the loader's reason.
pub fn open(path: &Path, title: &str) -> Result<Handle> {
    open_with(path, title, RTLD_NOW)
}

/// Opens the library like [`open`], but resolves functions that it lacks itself only when they are called.
///
/// # Errors
/// Those of [`open`].
pub fn open_lazily(path: &Path, title: &str) -> Result<Handle> {
    open_with(path, title, RTLD_LAZY)
}

/// Opens locally: a library may contain versions of others that are in this process too.
fn open_with(path: &Path, title: &str, binding: c_int) -> Result<Handle> {
    // SAFETY: opening runs the library's initialisers; the user chose this library to be run.
    unsafe { Handle::open(Some(path), binding | RTLD_LOCAL) }.map_err(|error| {
        let reason = reason(&error);
        Error::internal(format!("unable to open {title} '{}': {reason}", path.display()))
    })
}

/// Returns the text of the dynamic loader: the error itself says only that loading failed.
pub fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Declares objects of a library that are only known by their addresses.
#[macro_export]
macro_rules! objects {
    ($vis:vis $($name:ident)*) => { $( #[repr(C)] $vis struct $name { _private: [u8; 0] } )* };
}

/// Declares the used functions of a library, with a function that finds each by its name.
#[macro_export]
macro_rules! functions {
    (
        $(#[$doc:meta])* $vis:vis struct $functions:ident;
        $($name:ident = $symbol:literal: fn $arguments:tt $(-> $result:ty)?;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        $vis struct $functions {
            $(pub $name: unsafe extern "C" fn $arguments $(-> $result)?,)*
        }

        impl $functions {
            /// # Errors
            /// The name of the first missing function.
            ///
            /// # Safety
            /// The functions of these names in the library must have these types, and it must stay open as long as the
            /// result is used.
            pub unsafe fn find(
                handle: &$crate::Handle,
            ) -> ::std::result::Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the caller's word.
                    $($name: *unsafe { handle.get($symbol) }.map_err(|_| $symbol)?,)*
                })
            }
        }
    };
}

//! Opens a library and finds its functions.

use std::path::Path;

use galatea_native_library::Handle;
use galatea_types::Result;

use super::{
    inspect::{LibraryFile, Requirements},
    stand_ins,
};
use crate::Offer;

/// An opened library. It is never closed, because it may have threads of its own.
pub struct Library {
    handle: std::mem::ManuallyDrop<Handle>,
    file: LibraryFile,
}

impl Library {
    /// Opens the library at `path`, which finds the functions of `offers`. Its initialisers run: the user chose it.
    ///
    /// # Errors
    /// The path, and what is wrong with the file, what it calls and is not offered, or the loader's reason.
    pub fn open(
        path: &Path,
        requirements: &Requirements<'_>,
        offers: &[&'static Offer],
    ) -> Result<Self> {
        let file = LibraryFile::read(path).map_err(|error| requirements.refuse(path, &error))?;
        file.check(path, requirements, offers)?;
        stand_ins::prepare(&file.needed, offers)?;
        let handle = galatea_native_library::open(path, requirements.kind)?;
        Ok(Self { handle: std::mem::ManuallyDrop::new(handle), file })
    }

    /// Returns the function of this name; `None` if the library has none.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the type of the library's function.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller's word; the library is never closed.
        unsafe { self.handle.get::<F>(name) }.ok().map(|function| *function)
    }

    /// Returns what its file says about it.
    pub fn file(&self) -> &LibraryFile {
        &self.file
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Library({:?})", self.file.name)
    }
}

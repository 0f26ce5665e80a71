//! Opens a library and finds its functions.

use std::{
    mem::ManuallyDrop,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_native_library::Handle;
use galatea_types::Result;

use super::{
    inspect::{LibraryFile, Requirements},
    stand_ins,
};
use crate::Offer;

/// An opened library. It is never closed, because it may have threads of its own.
#[derive(Clone)]
pub struct Library(Arc<Opened>);

struct Opened {
    handle: ManuallyDrop<Handle>,
    file: LibraryFile,
    path: PathBuf,
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
        let handle = ManuallyDrop::new(handle);
        Ok(Self(Arc::new(Opened { handle, file, path: path.to_owned() })))
    }

    /// Returns the function of this name, of the library or of one that it needs; `None` if there is none.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the type of that function.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller's word; the library is never closed.
        unsafe { self.0.handle.get::<F>(name) }.ok().map(|function| *function)
    }

    /// Returns what its file says about it.
    pub fn file(&self) -> &LibraryFile {
        &self.0.file
    }

    /// Returns the name of its file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Library({:?})", self.0.file.name)
    }
}

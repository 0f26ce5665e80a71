//! Libraries of Triton exist for Linux only.

use std::path::Path;

use galatea_types::{Error, Result};

use super::inspect::{LibraryFile, Requirements};
use crate::Offer;

/// An opened library.
#[derive(Debug)]
pub struct Library {
    file: LibraryFile,
}

impl Library {
    /// Refuses to open a library.
    ///
    /// # Errors
    /// Always: `Unsupported`.
    pub fn open(path: &Path, _: &Requirements<'_>, _: &[&'static Offer]) -> Result<Self> {
        Err(Error::unsupported(format!(
            "'{}' cannot be opened: libraries for Triton are supported on Linux only",
            path.display()
        )))
    }

    /// Returns the function of this name.
    ///
    /// # Safety
    /// That of the function for Linux.
    pub unsafe fn function<F: Copy>(&self, _: &str) -> Option<F> {
        None
    }

    /// Returns what its file says about it.
    pub fn file(&self) -> &LibraryFile {
        &self.file
    }
}

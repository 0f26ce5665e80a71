//! The kinds of libraries: their names, their places, and what each is offered.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use galatea_types::Result;

use super::inspect::{LibraryFile, Requirements};
use crate::{
    Library, Offer,
    since::{CalledVersion, Version},
};

/// A kind of libraries that were made for Triton, each in a file `PREFIXname.so` of the folder `name`.
#[derive(Debug)]
pub struct LibraryKind {
    /// The begin of the names of their files, such as `libtriton_`.
    pub prefix: &'static str,
    /// The begin of the names of the functions that are only for this kind, such as `TRITONBACKEND`.
    pub interface: &'static str,
    /// The version of that interface that is offered.
    pub offered: Version,
    /// The functions that a library must have.
    pub requirements: Requirements<'static>,
    /// The functions that it may call.
    pub offers: &'static [&'static Offer],
}

impl LibraryKind {
    /// Returns the name of the file of a library.
    pub fn file_name(&self, name: &str) -> String {
        format!("{}{name}.so", self.prefix)
    }

    /// Returns the library's name from that of its file.
    pub fn name_of<'a>(&self, file: &'a str) -> Option<&'a str> {
        file.strip_prefix(self.prefix)?.strip_suffix(".so")
    }

    /// Returns the library of this name in its folder in `directory`. A name that leads elsewhere has none.
    pub fn find(&self, directory: &Path, name: &str) -> Option<PathBuf> {
        let is_plain = !name.contains(['/', '\0']) && !name.is_empty() && name != "..";
        let path = directory.join(name).join(self.file_name(name));
        (is_plain && path.is_file()).then_some(path)
    }

    /// Returns the names of all libraries in `directory` with their files, in their order. A folder that cannot be read has
    /// none.
    pub fn all_in(&self, directory: &Path) -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<_> =
            names.filter_map(|name| Some((name.clone(), self.find(directory, &name)?))).collect();
        found.sort();
        found
    }

    /// Opens the library at `path`.
    ///
    /// # Errors
    /// Those of [`Library::open`].
    pub fn open(&self, path: &Path) -> Result<Library> {
        Library::open(path, &self.requirements, self.offers)
    }

    /// Looks into the library at `path`. No code of it runs.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn inspect(&self, path: &Path) -> Result<LibraryFacts> {
        let file = LibraryFile::read(path).map_err(|e| self.requirements.refuse(path, &e))?;
        file.check(path, &self.requirements, self.offers)?;
        let functions = self.offers.iter().flat_map(|offer| offer.functions);
        let refused = functions.filter(|function| !function.is_supported).map(|f| f.name);
        Ok(LibraryFacts {
            called: CalledVersion::of(self.interface, &file.called),
            offered: self.offered,
            refused: refused
                .filter(|name| file.called.iter().any(|called| called == name))
                .collect(),
        })
    }
}

/// The facts about a library that its file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFacts {
    called: CalledVersion,
    offered: Version,
    /// The functions that it calls and that only answer that they are not supported.
    refused: Vec<&'static str>,
}

impl fmt::Display for LibraryFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.offered;
        write!(f, "it calls functions up to {}, {major}.{minor} is offered", self.called)?;
        match &self.refused[..] {
            [] => Ok(()),
            refused => write!(f, "; not supported of these: {}", refused.join(", ")),
        }
    }
}

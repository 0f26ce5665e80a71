//! What is installed: pinned files of the package index, what is kept of them, and where it is put.

use sha2::{Digest, Sha256};

use crate::runtime::Wheel;

/// A folder that is made of files of the package index. It is there as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package<'a> {
    /// As users know it.
    pub title: &'a str,
    /// What is installed.
    pub version: &'a str,
    /// Folder of all its versions, below that of the user's data.
    pub place: &'a str,
    /// What it is made of.
    pub parts: &'a [Part<'a>],
    /// What the program has itself of it: path in the installed folder, and content.
    pub files: &'a [(&'a str, &'a [u8])],
    /// What else to do where it cannot be fetched, as the end of a sentence.
    pub otherwise: &'a str,
}

impl Package<'_> {
    /// Name of the folder it is installed in: the version, and what tells files that the program has of it from those that
    /// an earlier program had.
    pub(crate) fn folder_name(&self) -> String {
        if self.files.is_empty() {
            return self.version.to_owned();
        }
        let mut hash = Sha256::new();
        for (path, content) in self.files {
            hash.update(path.len().to_le_bytes());
            hash.update(path);
            hash.update(content.len().to_le_bytes());
            hash.update(content);
        }
        let digest = hash.finalize();
        let short: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{short}", self.version)
    }
}

/// One file of the package index, and what is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Name of the project on the package index.
    pub project: &'a str,
    /// One per processor architecture it is offered for.
    pub wheels: &'a [Wheel],
    /// Path inside, path in the installed folder. A path that ends with a slash is a folder with all that is in it.
    pub members: &'a [(&'a str, &'a str)],
}

impl Part<'_> {
    /// The file for this machine.
    pub fn wheel(&self) -> Option<&Wheel> {
        self.wheels.iter().find(|wheel| [std::env::consts::ARCH, Wheel::ANY].contains(&wheel.arch))
    }
}

//! The content of an installation: pinned files of the package index, their kept members, and the target folder.

use sha2::{Digest, Sha256};

use crate::runtime::Wheel;

/// A folder made of files of the package index. It exists as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package<'a> {
    /// Name for users.
    pub title: &'a str,
    /// Version that is installed.
    pub version: &'a str,
    /// Folder of all its versions, below the user's data folder.
    pub place: &'a str,
    /// Files of the package index in it.
    pub parts: &'a [Part<'a>],
    /// Files in it that the program itself contains: path in the installed folder, and content.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Alternative if it cannot be fetched, as the end of a sentence.
    pub otherwise: &'a str,
}

impl Package<'_> {
    /// Returns the name of its folder: the version, and a mark that separates the program's own files from an earlier
    /// program's.
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

/// One file of the package index, with the members that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Name of the project on the package index.
    pub project: &'a str,
    /// One file per processor architecture.
    pub wheels: &'a [Wheel],
    /// Path in the file, and path in the installed folder. A path that ends with a slash is a folder with its content.
    pub members: &'a [(&'a str, &'a str)],
}

impl Part<'_> {
    /// Returns the file for this machine.
    pub fn wheel(&self) -> Option<&Wheel> {
        self.wheels.iter().find(|wheel| [std::env::consts::ARCH, Wheel::ANY].contains(&wheel.arch))
    }
}

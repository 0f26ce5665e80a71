//! A model's folder and the versions in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::Result;

use super::{config_name::CONFIG_FOLDER, error::unreadable_model, root::FolderLease};

/// The longest name of a model, in bytes: the longest that a folder can have.
pub(crate) const MAX_MODEL_NAME: usize = 255;

/// A model's folder on this machine, and its content.
#[derive(Clone, Debug)]
pub(crate) struct ModelFolder {
    pub name: String,
    /// The numbers of the version folders, ascending.
    pub versions: Vec<i64>,
    /// True if its repository gave it its name, which may then differ from that in its configuration.
    pub is_renamed: bool,
    lease: Arc<FolderLease>,
}

impl ModelFolder {
    pub fn open(name: &str, lease: FolderLease) -> Result<Self> {
        let names = folder_names(lease.path()).map_err(|source| unreadable_model(name, source))?;
        let mut versions: Vec<i64> = names.iter().filter_map(|entry| version_of(entry)).collect();
        versions.sort_unstable();
        Ok(Self { name: name.to_owned(), versions, is_renamed: false, lease: Arc::new(lease) })
    }

    /// Returns the same folder, with `is_renamed` set.
    pub fn renamed(self, is_renamed: bool) -> Self {
        Self { is_renamed, ..self }
    }

    /// Returns the folder that replaces this one of the same model.
    pub fn replaced(&self, lease: FolderLease) -> Result<Self> {
        Ok(Self::open(&self.name, lease)?.renamed(self.is_renamed))
    }

    pub fn path(&self) -> &Path {
        self.lease.path()
    }

    /// Returns the lease, which must be kept while a version of the model is loaded.
    pub fn lease(&self) -> Arc<FolderLease> {
        self.lease.clone()
    }

    pub fn version_dir(&self, version: i64) -> PathBuf {
        self.path().join(version.to_string())
    }

    /// Returns the names of files and folders in the lowest version folder, from which the backend is guessed. Names of folders
    /// end in `/`.
    pub fn lowest_version_files(&self) -> Vec<String> {
        self.versions.first().map(|&v| entry_names(&self.version_dir(v))).unwrap_or_default()
    }
}

/// Returns true if a name can be that of a model's folder: one component of a path. Any other could lead out of the repository.
pub(crate) fn is_model_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.len() <= MAX_MODEL_NAME
        && !name.contains(['/', '\\', '\0'])
}

/// Folders of a model that are no versions: warm-up data, initial states of sequences, other configurations, and Python's
/// bytecode.
const NO_VERSIONS: [&str; 4] = ["warmup", "initial_state", CONFIG_FOLDER, "__pycache__"];

/// Returns the number of a version folder: a number without leading zeros. All other entries are ignored, with a warning if
/// that could be a mistake.
fn version_of(entry: &str) -> Option<i64> {
    if let Some(reason) = mistake(entry) {
        log::warn!("ignore version directory '{entry}' which {reason}");
        return None;
    }
    version_number(entry)
}

/// Returns the version that a name means; `None` if it means none.
pub(crate) fn version_number(name: &str) -> Option<i64> {
    let is_canonical = name == "0" || !name.starts_with('0');
    let is_number = is_canonical && name.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| name.parse().ok()).flatten()
}

/// Returns why a folder is no version although it could have been meant as one.
fn mistake(entry: &str) -> Option<&'static str> {
    if entry.len() > 1 && entry.starts_with('0') {
        return Some("contains leading zeros in its directory name");
    }
    let is_number = entry.bytes().all(|b| b.is_ascii_digit());
    (!is_number && !NO_VERSIONS.contains(&entry)).then_some("fails to convert to integral number")
}

/// Returns the names in a folder, sorted. Those of folders, and of links to them, end in `/`.
fn entry_names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let name = |entry: fs::DirEntry| {
        let end = if entry.path().is_dir() { "/" } else { "" };
        Some(entry.file_name().into_string().ok()? + end)
    };
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort();
    names
}

/// Returns sub-folders, including links to folders (a repository is often a tree of links). Hidden ones are skipped.
pub(super) fn folder_names(dir: &Path) -> io::Result<Vec<String>> {
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        (!name.starts_with('.') && entry.path().is_dir()).then_some(name)
    };
    Ok(fs::read_dir(dir)?.flatten().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_are_single_path_components() {
        for name in ["m", "a.b", "..a", "ä", "a b"] {
            assert!(is_model_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../m", "/m", "a\\b", "a\0", &"x".repeat(256)] {
            assert!(!is_model_name(name), "{name:?}");
        }
    }

    #[test]
    fn version_folders_are_positive_numbers() {
        for (entry, expected) in [
            ("1", Some(1)),
            ("12", Some(12)),
            ("0", Some(0)),
            ("00", None),
            ("01", None),
            ("1a", None),
            ("", None),
            ("-1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(version_of(entry), expected, "{entry:?}");
        }
    }

    #[test]
    fn folders_that_look_like_versions_are_reported() {
        let zeros = Some("contains leading zeros in its directory name");
        let text = Some("fails to convert to integral number");
        let expected = [("003", zeros), ("0x5", zeros), ("abc", text), ("5x", text), ("-1", text)];
        for (entry, reason) in expected {
            assert_eq!(mistake(entry), reason, "{entry}");
        }
        for entry in ["7", "0", "warmup", "initial_state", "configs", "__pycache__"] {
            assert_eq!(mistake(entry), None, "{entry}");
        }
    }
}

//! The manifest of a cache entry: the files that it must contain.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

/// Most bytes of a manifest, enough for the most files that a model may have.
const MAX_BYTES: u64 = 256 << 20;

/// The files of an entry when it was complete. Others may be added later: models write into their folder.
#[derive(Debug, Deserialize, Serialize)]
pub struct Manifest {
    /// Name of the entry for messages.
    pub what: String,
    /// Bytes of all files.
    pub bytes: u64,
    files: Vec<ManifestFile>,
}

#[derive(Debug, Deserialize, Serialize)]
struct ManifestFile {
    path: String,
    size: u64,
    /// Time of change in nanoseconds. It differs if the file was written to since then.
    modified: i64,
}

impl Manifest {
    /// Lists all files below `folder`/`name`.
    pub fn of(what: &str, folder: &Path, name: &str) -> io::Result<Self> {
        let mut files = Vec::new();
        collect(&folder.join(name), "", &mut files)?;
        let bytes = files.iter().map(|file| file.size).sum();
        Ok(Self { what: what.to_owned(), bytes, files })
    }

    pub fn read(path: &Path) -> io::Result<Self> {
        let mut text = String::new();
        File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec(self)?)
    }

    /// Returns the first file below `folder` that has changed.
    pub fn problem(&self, folder: &Path) -> Option<String> {
        self.files.iter().find_map(|file| {
            let Ok(found) = fs::symlink_metadata(folder.join(&file.path)) else {
                return Some(format!("'{}' is missing", file.path));
            };
            let is_same = found.size() == file.size && modified(&found) == file.modified;
            (!is_same).then(|| format!("'{}' was changed", file.path))
        })
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<ManifestFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidFilename)?;
        let path = format!("{prefix}{name}");
        let found = entry.metadata()?;
        if found.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.push(ManifestFile { path, size: found.size(), modified: modified(&found) });
        }
    }
    Ok(())
}

fn modified(found: &fs::Metadata) -> i64 {
    found.mtime().wrapping_mul(1_000_000_000).wrapping_add(found.mtime_nsec())
}

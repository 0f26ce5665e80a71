//! Lists the files that one version of a model consists of.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    config_name::is_configuration,
    folder::version_number,
    snapshot::{BYTECODE, MAX_DEPTH, MAX_ENTRIES},
};

/// Returns the files in a version's folder, and those that all versions share, sorted by their paths in the model's folder.
/// Configurations and Python's bytecode are excluded.
///
/// # Errors
/// When a folder cannot be listed, or there are too many files.
pub(crate) fn version_files(folder: &Path, version: i64) -> io::Result<Vec<(OsString, PathBuf)>> {
    let mut found = FoundFiles { files: Vec::new(), left: MAX_ENTRIES };
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(version_number);
        if number.is_none_or(|number| number == version) && !is_configuration(&name) {
            found.add(&name, folder.join(&name), 1)?;
        }
    }
    found.files.sort();
    Ok(found.files)
}

struct FoundFiles {
    files: Vec<(OsString, PathBuf)>,
    left: usize,
}

impl FoundFiles {
    /// Adds a file or folder. Links to files are followed, and those to folders directly in a model's folder:
    /// others lead through the whole machine, or in circles.
    fn add(&mut self, name: &OsString, path: PathBuf, depth: usize) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
        if path.file_name().is_some_and(|name| name == BYTECODE) {
            return Ok(());
        }
        let metadata = path.metadata()?;
        if metadata.is_file() {
            self.files.push((name.clone(), path));
        } else if metadata.is_dir() && (depth == 1 || !path.is_symlink()) {
            if depth == MAX_DEPTH {
                return Err(too_many());
            }
            for entry in fs::read_dir(&path)? {
                let own = entry?.file_name();
                let mut below = name.clone();
                below.push("/");
                below.push(&own);
                self.add(&below, path.join(own), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn too_many() -> io::Error {
    io::Error::other("there are too many files, or folders in folders")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_of_a_version_and_shared_files_are_listed() {
        let root = tempfile::tempdir().expect("folder");
        let folder = root.path().join("m");
        for path in [
            "1/model",
            "1/a/b",
            "1/__pycache__/x",
            "2/model",
            "labels.txt",
            "config.pbtxt",
            "configs/a.pbtxt",
        ] {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
            fs::write(file, path).expect("file");
        }
        symlink(folder.join("2/model"), folder.join("1/link")).expect("link");
        symlink(&folder, folder.join("1/circle")).expect("link");
        let names = |version| -> Vec<String> {
            let files = version_files(&folder, version).expect("readable");
            files.into_iter().map(|(name, _)| name.into_string().expect("text")).collect()
        };
        assert_eq!(names(1), ["1/a/b", "1/link", "1/model", "labels.txt"]);
        assert_eq!(names(2), ["2/model", "labels.txt"]);
        assert!(version_files(&root.path().join("none"), 1).is_err());
    }
}

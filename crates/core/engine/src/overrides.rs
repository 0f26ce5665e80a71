//! The configuration and files that a load request may send in place of the repository's.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
    sync::Mutex,
};

use galatea_backend::relative_inside;
use galatea_types::{Buffer, Error, LockExt, Result};
use tempfile::TempDir;

use crate::repository::FolderLease;

/// The configuration and files that a load request may send in place of the repository's.
#[derive(Clone, Debug, Default)]
pub struct LoadOverrides {
    /// A model configuration as JSON.
    pub config: Option<String>,
    /// The content of files by their path in the model's folder. The folder then has only these files, so they need a
    /// configuration with them.
    pub files: BTreeMap<String, Buffer>,
}

/// The largest number of files of one load request.
const MAX_FILES: usize = 4096;
/// The largest number of bytes of the path of such a file.
const MAX_PATH: usize = 1024;
/// The largest number of folders in such a path, plus the file itself.
const MAX_DEPTH: usize = 16;

impl LoadOverrides {
    /// Returns true if the model is loaded as the repository has it.
    pub fn is_empty(&self) -> bool {
        self.config.is_none() && self.files.is_empty()
    }

    /// Writes the files to a model's folder, which is removed when the model is unloaded. Returns `None` without files.
    pub(crate) fn write_files(&self, folders: &OverrideFolders) -> Result<Option<FolderLease>> {
        if self.files.is_empty() {
            return Ok(None);
        }
        if self.config.is_none() {
            return Err(Error::invalid_arg(
                "Load parameter 'config' must be specified for model file override",
            ));
        }
        let paths = self.checked_paths()?;
        let not_written = |error: io::Error| {
            let text = format!("failed to write override files: {error}");
            Error::internal(text).with_source(error)
        };
        let folder = folders.create().map_err(not_written)?;
        for (path, content) in paths.iter().zip(self.files.values()) {
            let target = folder.path().join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(not_written)?;
            }
            fs::write(&target, content.host()?).map_err(not_written)?;
        }
        Ok(Some(FolderLease::new(folder)))
    }

    /// Returns the paths of the files, in their order, checked before anything is written.
    fn checked_paths(&self) -> Result<Vec<PathBuf>> {
        let count = self.files.len();
        if count > MAX_FILES {
            let text = format!("{count} files in a load request, the limit is {MAX_FILES}");
            return Err(Error::invalid_arg(text));
        }
        self.files.keys().map(|path| safe_relative(path)).collect()
    }
}

fn safe_relative(path: &str) -> Result<PathBuf> {
    if path.len() > MAX_PATH {
        let size = path.len();
        let text =
            format!("the path of a file parameter has {size} bytes, the limit is {MAX_PATH}");
        return Err(Error::invalid_arg(text));
    }
    // As in Triton, a leading slash means the model's folder.
    let relative = path.trim_start_matches('/');
    let inside = relative_inside(relative).ok_or_else(|| {
        Error::invalid_arg(format!(
            "Invalid file parameter '{path}' with normalized path '{}' must stay within model directory.",
            normalized(relative).display()
        ))
    })?;
    match inside.components().count() {
        depth if depth > MAX_DEPTH => Err(Error::invalid_arg(format!(
            "the path of file parameter '{path}' has {depth} parts, the limit is {MAX_DEPTH}"
        ))),
        _ => Ok(inside),
    }
}

/// Returns a path as Triton's text writes it.
fn normalized(path: &str) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in Path::new(path).components() {
        let is_up = component == Component::ParentDir && normalized.file_name().is_some();
        if is_up {
            normalized.pop();
        } else if component != Component::CurDir {
            normalized.push(component);
        }
    }
    normalized
}

/// A folder for temporary files, with a folder for each load request in it. Created when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct OverrideFolders(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    root: Option<TempDir>,
    is_closed: bool,
}

impl OverrideFolders {
    /// Creates an empty folder that only this process may read. Dropping it removes it.
    pub fn create(&self) -> io::Result<TempDir> {
        let mut state = self.0.lock_unpoisoned();
        if state.is_closed {
            return Err(io::Error::other("Server exiting"));
        }
        let root = match state.root.take() {
            Some(root) => root,
            None => tempfile::Builder::new().prefix("galatea-models-").tempdir()?,
        };
        let folder = TempDir::new_in(root.path());
        state.root = Some(root);
        folder
    }

    /// Removes the remaining folders and creates no more: the process ends, with or without all models unloaded.
    pub fn close(&self) {
        let mut state = self.0.lock_unpoisoned();
        state.is_closed = true;
        drop(state.root.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_removes_all_files() {
        let folders = OverrideFolders::default();
        let (first, second) = (folders.create().expect("made"), folders.create().expect("made"));
        let root = first.path().parent().expect("the root").to_owned();
        assert_eq!(second.path().parent(), Some(&*root));
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && root.exists());
        folders.close();
        assert!(!root.exists(), "though a model still has one");
        folders.create().expect_err("no more");
    }

    #[test]
    fn override_paths_cannot_leave_the_folder() {
        for path in ["1/model.onnx", "./a/../1/model.onnx", "/1/model.onnx", "//1/model.onnx"] {
            assert_eq!(safe_relative(path).expect("inside"), Path::new("1/model.onnx"));
        }
        for path in ["", "/", "..", "../x", "/../etc/x", "a/../../x", "a/.."] {
            let error = safe_relative(path).expect_err(path);
            assert!(error.message().contains("must stay within model directory"), "{error}");
        }
    }
}

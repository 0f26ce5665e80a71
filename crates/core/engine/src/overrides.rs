//! What a load request may bring along in place of the repository's files.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

use galatea_backend::relative_inside;
use galatea_types::{Buffer, Error, Result};

use crate::{override_folders::OverrideFolders, repository::FolderLease};

/// What a load request may bring along in place of the repository's files.
#[derive(Clone, Debug, Default)]
pub struct LoadOverrides {
    /// A model configuration as JSON.
    pub config: Option<String>,
    /// Path relative to the model's folder, and content. The model's folder is then made of these files only, so
    /// a configuration must come with them.
    pub files: BTreeMap<String, Buffer>,
}

/// Files of one load request.
const MAX_FILES: usize = 4096;
/// Bytes of the path of such a file.
const MAX_PATH: usize = 1024;
/// Folders of such a path, and the file itself.
const MAX_DEPTH: usize = 16;

impl LoadOverrides {
    /// Whether the model is loaded as the repository has it.
    pub fn is_empty(&self) -> bool {
        self.config.is_none() && self.files.is_empty()
    }

    /// The files as a model's folder, which is removed when the model is unloaded. `None` when there are none.
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

    /// The paths of the files, in their order, before anything is written.
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
    // As in Triton, a leading slash stands for the model's folder.
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

/// As Triton's text has it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_folder() {
        for path in ["1/model.onnx", "./a/../1/model.onnx", "/1/model.onnx", "//1/model.onnx"] {
            assert_eq!(safe_relative(path).expect("inside"), Path::new("1/model.onnx"));
        }
        for path in ["", "/", "..", "../x", "/../etc/x", "a/../../x", "a/.."] {
            let error = safe_relative(path).expect_err(path);
            assert!(error.message().contains("must stay within model directory"), "{error}");
        }
    }
}

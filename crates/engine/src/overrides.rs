//! What a load request may bring along in place of the repository's files.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

use galatea_backend::relative_inside;
use galatea_types::{Buffer, Code, Error, NotInHostMemory};

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

/// Why the files of a load request cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OverrideError {
    #[error("Load parameter 'config' must be specified for model file override")]
    WithoutConfig,
    #[error(
        "Invalid file parameter '{path}' with normalized path '{}' must stay within model directory.",
        normalized.display()
    )]
    OutsideFolder { path: String, normalized: PathBuf },
    #[error("{count} files in a load request, the limit is {MAX_FILES}")]
    TooMany { count: usize },
    #[error("the path of a file parameter has {size} bytes, the limit is {MAX_PATH}")]
    LongPath { size: usize },
    #[error("the path of file parameter '{path}' has {depth} parts, the limit is {MAX_DEPTH}")]
    DeepPath { path: String, depth: usize },
    #[error("failed to write override files: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Unreadable(#[from] NotInHostMemory),
}

impl From<OverrideError> for Error {
    fn from(error: OverrideError) -> Self {
        match error {
            OverrideError::Write(_) => {
                Self::new(Code::Internal, error.to_string()).with_source(error)
            }
            OverrideError::Unreadable(error) => error.into(),
            _ => Self::invalid_arg(error.to_string()),
        }
    }
}

impl LoadOverrides {
    /// Whether the model is loaded as the repository has it.
    pub fn is_empty(&self) -> bool {
        self.config.is_none() && self.files.is_empty()
    }

    /// The files as a model's folder, which is removed when the model is unloaded. `None` when there are none.
    pub(crate) fn write_files(
        &self,
        folders: &OverrideFolders,
    ) -> Result<Option<FolderLease>, OverrideError> {
        if self.files.is_empty() {
            return Ok(None);
        }
        if self.config.is_none() {
            return Err(OverrideError::WithoutConfig);
        }
        let paths = self.checked_paths()?;
        let folder = folders.create()?;
        for (path, content) in paths.iter().zip(self.files.values()) {
            let target = folder.path().join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&target, content.host()?)?;
        }
        Ok(Some(FolderLease::new(folder)))
    }

    /// The paths of the files, in their order, before anything is written.
    fn checked_paths(&self) -> Result<Vec<PathBuf>, OverrideError> {
        if self.files.len() > MAX_FILES {
            return Err(OverrideError::TooMany { count: self.files.len() });
        }
        self.files.keys().map(|path| safe_relative(path)).collect()
    }
}

fn safe_relative(path: &str) -> Result<PathBuf, OverrideError> {
    if path.len() > MAX_PATH {
        return Err(OverrideError::LongPath { size: path.len() });
    }
    // As in Triton, a leading slash stands for the model's folder.
    let relative = path.trim_start_matches('/');
    let inside = relative_inside(relative).ok_or_else(|| OverrideError::OutsideFolder {
        path: path.to_owned(),
        normalized: normalized(relative),
    })?;
    match inside.components().count() {
        depth if depth > MAX_DEPTH => Err(OverrideError::DeepPath { path: path.to_owned(), depth }),
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
            let error = Error::from(safe_relative(path).expect_err(path));
            assert!(error.message().contains("must stay within model directory"), "{error}");
        }
    }
}

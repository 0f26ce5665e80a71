//! A model repository that is a folder of this machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::{Code, Error, Result};

use super::{
    error::{no_stat, unreadable},
    folder::folder_names,
    root::{FolderLease, RepositoryRoot},
    snapshot::FolderSnapshot,
    text_file::read_text_file,
};

/// A folder with one folder per model. Nothing is copied: a model's files are read where they are.
#[derive(Clone, Debug)]
pub struct LocalRoot(PathBuf);

impl LocalRoot {
    /// Of a folder that need not exist yet: [`RepositoryRoot::check`] reports whether it does.
    pub fn at(folder: impl Into<PathBuf>) -> Arc<dyn RepositoryRoot> {
        Arc::new(Self(folder.into()))
    }
}

impl RepositoryRoot for LocalRoot {
    fn check(&self) -> Result<()> {
        let path = self.0.display().to_string();
        match self.0.metadata() {
            Err(source) => return Err(no_stat(&path, source)),
            Ok(found) if !found.is_dir() => {
                return Err(Error::internal(format!("model repository '{path}' is not a folder")));
            }
            Ok(_) => {}
        }
        fs::read_dir(&self.0).map(drop).map_err(|source| {
            let text = format!("failed to read model repository {path}: {source}");
            unreadable(Code::InvalidArg, text, &path, source)
        })
    }

    fn place(&self) -> String {
        self.0.display().to_string()
    }

    fn local_folder(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn path_of(&self, model: &str, inside: &str) -> Option<PathBuf> {
        Some(self.0.join(model).join(inside))
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        folder_names(&self.0)
    }

    fn holds(&self, model: &str) -> bool {
        self.0.join(model).is_dir()
    }

    fn read_text(&self, model: &str, file: &str) -> io::Result<String> {
        read_text_file(&self.0.join(model).join(file))
    }

    fn snapshot(&self, model: &str) -> io::Result<FolderSnapshot> {
        FolderSnapshot::of(&self.0.join(model))
    }

    fn lease(&self, model: &str) -> Result<FolderLease> {
        Ok(FolderLease::new(self.0.join(model)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(LocalRoot::at(folder.path()).check().is_ok());
        let file = folder.path().join("file");
        fs::write(&file, "").expect("file");
        let error = LocalRoot::at(&file).check().expect_err("a file");
        let text = format!("model repository '{}' is not a folder", file.display());
        assert_eq!((error.code(), error.message()), (Code::Internal, text.as_str()));
        let error = LocalRoot::at("/nonexistent/models").check().expect_err("nothing");
        assert_eq!(
            error.message(),
            "failed to stat file /nonexistent/models: No such file or directory (os error 2)"
        );
        assert!(std::error::Error::source(&error).is_some(), "the cause is kept");
    }
}

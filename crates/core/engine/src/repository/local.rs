//! A model repository that is a folder of this machine.

use std::{
    fmt, fs, io,
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

/// A folder with one folder per model. Nothing is copied: a model's files are read in place.
#[derive(Clone)]
pub struct LocalRoot {
    place: PathBuf,
    renamed: Option<Renamed>,
}

/// A model whose name differs from that of its folder.
#[derive(Clone)]
struct Renamed {
    folder: String,
    model: String,
}

impl LocalRoot {
    /// Creates the repository of a folder that need not exist yet: [`RepositoryRoot::check`] reports if it does.
    pub fn at(folder: impl Into<PathBuf>) -> Arc<dyn RepositoryRoot> {
        Arc::new(Self { place: folder.into(), renamed: None })
    }

    /// Creates a repository at `place` whose `folder`, one path component, has the model `model`. It is added at runtime, for a
    /// model that a client names. Folders outside of `place` are not in it: links to folders are no models.
    pub fn renaming(
        place: impl Into<PathBuf>,
        folder: impl Into<String>,
        model: impl Into<String>,
    ) -> Arc<dyn RepositoryRoot> {
        let renamed = Some(Renamed { folder: folder.into(), model: model.into() });
        Arc::new(Self { place: place.into(), renamed })
    }

    fn folder_of(&self, model: &str) -> PathBuf {
        let renamed = self.renamed.as_ref().filter(|renamed| renamed.model == model);
        self.place.join(renamed.map_or(model, |renamed| &renamed.folder))
    }
}

impl RepositoryRoot for LocalRoot {
    fn check(&self) -> Result<()> {
        let path = self.place();
        match self.place.metadata() {
            Err(source) => return Err(no_stat(&path, source)),
            Ok(found) if !found.is_dir() => {
                return Err(Error::internal(format!("model repository '{path}' is not a folder")));
            }
            Ok(_) => {}
        }
        fs::read_dir(&self.place).map(drop).map_err(|source| {
            let text = format!("failed to read model repository {path}: {source}");
            unreadable(Code::InvalidArg, text, &path, source)
        })
    }

    fn place(&self) -> String {
        self.place.display().to_string()
    }

    fn local_folder(&self) -> Option<&Path> {
        self.renamed.is_none().then_some(&*self.place)
    }

    fn path_of(&self, model: &str, inside: &str) -> Option<PathBuf> {
        self.renamed.is_none().then(|| self.folder_of(model).join(inside))
    }

    fn new_name(&self) -> Option<&str> {
        self.renamed.as_ref().map(|renamed| &*renamed.model)
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        let mut names = folder_names(&self.place)?;
        if let Some(Renamed { folder, model }) = &self.renamed {
            names.retain(|name| name != folder);
            names.push(model.clone());
            names.retain(|name| self.holds(name));
        }
        Ok(names)
    }

    fn holds(&self, model: &str) -> bool {
        let folder = self.folder_of(model);
        folder.is_dir() && (self.renamed.is_none() || !folder.is_symlink())
    }

    fn read_text(&self, model: &str, file: &str) -> io::Result<String> {
        read_text_file(&self.folder_of(model).join(file))
    }

    fn snapshot(&self, model: &str) -> io::Result<FolderSnapshot> {
        FolderSnapshot::of(&self.folder_of(model))
    }

    fn lease(&self, model: &str) -> Result<FolderLease> {
        Ok(FolderLease::new(self.folder_of(model)))
    }
}

/// Writes the repository as the log names it.
impl fmt::Debug for LocalRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, renamed } = self;
        match renamed {
            None => f.debug_tuple("LocalRoot").field(place).finish(),
            Some(Renamed { folder, model }) => {
                write!(
                    f,
                    "RenamingRoot {{ place: {place:?}, folder: {folder:?}, model: {model:?} }}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_unreadable_root_is_named() {
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

    #[test]
    fn one_folder_gets_the_given_name_and_links_are_ignored() {
        let place = tempfile::tempdir().expect("folder");
        for folder in ["model/1", "inner/1"] {
            fs::create_dir_all(place.path().join(folder)).expect("folder");
        }
        symlink("/", place.path().join("link")).expect("link");
        let root = LocalRoot::renaming(place.path(), "model", "given");
        let mut names = root.model_names().expect("readable");
        names.sort();
        assert_eq!(names, ["given", "inner"]);
        assert!(root.holds("given") && root.holds("inner") && !root.holds("link"));
        assert_eq!(root.lease("given").expect("there").path(), place.path().join("model"));
        assert_eq!(root.new_name(), Some("given"));
        let root = LocalRoot::renaming(place.path(), "link", "given");
        assert!(!root.holds("given"), "a link leads out of it");
    }
}

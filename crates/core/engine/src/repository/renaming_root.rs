//! A local repository one of whose models has another name than its folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::Result;

use super::{
    folder::folder_names,
    local::LocalRoot,
    root::{FolderLease, RepositoryRoot},
    snapshot::FolderSnapshot,
    text_file::read_text_file,
};

/// A folder with one folder per model, of which one is known by a given name: a repository that is added while the
/// server runs, for a model that a client names. What leads out of it is not in it: links to folders are no models.
#[derive(Clone, Debug)]
pub struct RenamingRoot {
    place: PathBuf,
    folder: String,
    model: String,
}

impl RenamingRoot {
    /// The repository at `place`, whose `folder`, one component of a path, holds the model `model`.
    pub fn at(
        place: impl Into<PathBuf>,
        folder: impl Into<String>,
        model: impl Into<String>,
    ) -> Arc<dyn RepositoryRoot> {
        Arc::new(Self { place: place.into(), folder: folder.into(), model: model.into() })
    }

    fn folder_of(&self, model: &str) -> PathBuf {
        let folder = if model == self.model { &self.folder } else { model };
        self.place.join(folder)
    }
}

impl RepositoryRoot for RenamingRoot {
    fn check(&self) -> Result<()> {
        LocalRoot::at(&self.place).check()
    }

    fn place(&self) -> String {
        self.place.display().to_string()
    }

    fn new_name(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        let names = folder_names(&self.place)?.into_iter();
        let others = names.filter(|name| *name != self.folder && self.holds(name));
        let given = [self.model.clone()].into_iter().filter(|name| self.holds(name));
        Ok(given.chain(others).collect())
    }

    fn holds(&self, model: &str) -> bool {
        is_folder(&self.folder_of(model))
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

/// Not through a link.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn one_folder_has_the_given_name_and_links_are_no_models() {
        let place = tempfile::tempdir().expect("folder");
        for folder in ["model/1", "inner/1"] {
            fs::create_dir_all(place.path().join(folder)).expect("folder");
        }
        symlink("/", place.path().join("link")).expect("link");
        let root = RenamingRoot::at(place.path(), "model", "given");
        let mut names = root.model_names().expect("readable");
        names.sort();
        assert_eq!(names, ["given", "inner"]);
        assert!(root.holds("given") && root.holds("inner") && !root.holds("link"));
        assert_eq!(root.lease("given").expect("there").path(), place.path().join("model"));
        assert_eq!(root.new_name(), Some("given"));
        let root = RenamingRoot::at(place.path(), "link", "given");
        assert!(!root.holds("given"), "a link leads out of it");
    }
}

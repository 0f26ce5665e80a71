//! The interface of a place that has models.

use std::{
    any::Any,
    fmt, io,
    path::{Path, PathBuf},
};

use galatea_types::Result;

use super::{
    followed_load::{FollowedLoad, LoadEvent},
    snapshot::FolderSnapshot,
};

/// A model repository: a place with one folder per model. Only its implementation knows if that is a folder of this machine
/// or a store in the network.
///
/// May block: it is never used on the path of a request.
pub trait RepositoryRoot: fmt::Debug + Send + Sync {
    /// Checks that it can be read.
    ///
    /// # Errors
    /// The name of the repository as the user wrote it: the server does not start with one that cannot be read.
    fn check(&self) -> Result<()>;

    /// Begins a look, which may ask for the same several times until the returned value is dropped. Until then,
    /// results from now on may be used again, so that a place in the network is not asked twice.
    fn begin_look(&self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Returns the folder of this machine that users fill, if it is one; oddities in it are reported.
    fn local_folder(&self) -> Option<&Path> {
        None
    }

    /// Returns the place as the user gave it. It names the repository in texts and is unique.
    fn place(&self) -> String;

    /// Returns the path of a model's file on this machine, under the repository as it was given; `None` if it
    /// is not on this machine. `inside` is its path in the model's folder, empty for the folder itself.
    fn path_of(&self, model: &str, inside: &str) -> Option<PathBuf> {
        let _ = (model, inside);
        None
    }

    /// Returns why it could not be read last; it reported that in the log when it began. `None` if it answered,
    /// or if it reports each failure.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Returns the model whose name differs from that of its folder. Its configuration may have any name.
    fn new_name(&self) -> Option<&str> {
        None
    }

    /// Returns the names of its models, in any order. Hidden folders do not count.
    ///
    /// # Errors
    /// When it cannot be listed.
    fn model_names(&self) -> io::Result<Vec<String>>;

    /// Returns true if it has a model with this name. `model` is one path component here and below, never `.` or `..`.
    fn holds(&self, model: &str) -> bool;

    /// Returns the text of one file of a model, e.g. `config.pbtxt`, without the rest of the model.
    ///
    /// # Errors
    /// The kind is `NotFound` if there is no such file.
    fn read_text(&self, model: &str, file: &str) -> io::Result<String>;

    /// Returns the present content of a model's folder, to find out if it changed.
    ///
    /// # Errors
    /// When it cannot be listed.
    fn snapshot(&self, model: &str) -> io::Result<FolderSnapshot>;

    /// Returns the folder of a model as a folder of this machine. Fetched files are kept until the lease is dropped.
    ///
    /// # Errors
    /// When it cannot be fetched.
    fn lease(&self, model: &str) -> Result<FolderLease>;
}

/// A model's files in a folder of this machine, kept until this is dropped after the unload. Models read files also
/// after their load, for example when an instance is restarted.
pub struct FolderLease {
    /// Dropped before the folder.
    load: Option<FollowedLoad>,
    folder: Box<dyn AsRef<Path> + Send + Sync>,
}

impl FolderLease {
    /// Creates a lease of `folder`, which is released by dropping it.
    pub fn new(folder: impl AsRef<Path> + Send + Sync + 'static) -> Self {
        Self { load: None, folder: Box::new(folder) }
    }

    /// Returns the same folder, with followers of its load.
    pub(crate) fn followed(self, load: FollowedLoad) -> Self {
        Self { load: Some(load), ..self }
    }

    /// Returns the model's folder, which has the configuration and the version folders.
    pub fn path(&self) -> &Path {
        (*self.folder).as_ref()
    }

    pub(crate) fn tell(&self, event: LoadEvent) {
        self.load.iter().for_each(|load| load.tell(event));
    }
}

impl fmt::Debug for FolderLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FolderLease").field(&self.path()).finish()
    }
}

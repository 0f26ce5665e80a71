//! What the server needs of a place that holds models.

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

/// One model repository: a place with one folder per model. Where that is, a folder of this machine or a store
/// in the network, only its implementation knows.
///
/// May block: it is never used on the path of a request.
pub trait RepositoryRoot: fmt::Debug + Send + Sync {
    /// Whether it can be read at all.
    ///
    /// # Errors
    /// Name the repository as the user did: the server does not start with one that cannot be read.
    fn check(&self) -> Result<()>;

    /// Somebody begins to look at it, and may ask for the same several times until the returned value is dropped: for so
    /// long what it has found from now on may count, so that a place in the network is not asked for it again.
    fn begin_look(&self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// The place as a folder of this machine that people fill, where it is one: what is odd about it is told.
    fn local_folder(&self) -> Option<&Path> {
        None
    }

    /// Where it is, as it was given: its name in texts, and what tells it from others.
    fn place(&self) -> String;

    /// Where a file of a model is for somebody who opens it, as the repository was given; `inside`: its path in the model's
    /// folder, empty for the folder itself. `None`: not on this machine.
    fn path_of(&self, model: &str, inside: &str) -> Option<PathBuf> {
        let _ = (model, inside);
        None
    }

    /// Why it could not be read when it was last asked: it has told the log so when that began. `None` for one that
    /// answered, and for one whose failures are told each time.
    fn problem(&self) -> Option<String> {
        None
    }

    /// The model that it holds under another name than that of its folder, whose configuration may say any name.
    fn new_name(&self) -> Option<&str> {
        None
    }

    /// Names of the models it holds, in any order. Hidden folders are none.
    ///
    /// # Errors
    /// When it cannot be listed.
    fn model_names(&self) -> io::Result<Vec<String>>;

    /// Whether it holds a model of this name. `model` is one component of a path here and below, never `.` or `..`.
    fn holds(&self, model: &str) -> bool;

    /// The text of one file of a model, e.g. `config.pbtxt`, without the rest of the model.
    ///
    /// # Errors
    /// Of kind `NotFound` when there is no such file.
    fn read_text(&self, model: &str, file: &str) -> io::Result<String>;

    /// What the folder of a model holds now, to tell whether it changed.
    ///
    /// # Errors
    /// When it cannot be listed.
    fn snapshot(&self, model: &str) -> io::Result<FolderSnapshot>;

    /// The whole folder of a model as a folder of this machine. What has to be fetched for that is kept until
    /// the lease is dropped.
    ///
    /// # Errors
    /// When it cannot be fetched.
    fn lease(&self, model: &str) -> Result<FolderLease>;
}

/// A model's files as a folder of this machine, for as long as this value lives: until the model is unloaded.
/// Models read files also after they were loaded, when an instance is restarted for example.
pub struct FolderLease {
    /// Dropped before the folder.
    load: Option<FollowedLoad>,
    folder: Box<dyn AsRef<Path> + Send + Sync>,
}

impl FolderLease {
    /// `folder` is released by being dropped.
    pub fn new(folder: impl AsRef<Path> + Send + Sync + 'static) -> Self {
        Self { load: None, folder: Box::new(folder) }
    }

    /// The same folder, with followers of the load that it is for.
    pub(crate) fn followed(self, load: FollowedLoad) -> Self {
        Self { load: Some(load), ..self }
    }

    /// The model's folder: it holds the configuration and the version folders.
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

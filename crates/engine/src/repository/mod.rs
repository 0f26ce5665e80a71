//! The model repositories: which models there are, and their folders.

mod config_name;
mod error;
mod folder;
mod hidden_folder;
mod local;
mod renaming_root;
mod root;
mod snapshot;
mod text_file;

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, RwLock},
};

use galatea_types::{Result, RwLockExt};

use self::error::RepositoryError;
pub(crate) use self::{
    config_name::ConfigName,
    folder::{MAX_MODEL_NAME, ModelFolder, is_model_name},
    hidden_folder::HiddenFolder,
    text_file::{open_regular, read_text_file},
};
pub use self::{
    local::LocalRoot,
    renaming_root::RenamingRoot,
    root::{FolderLease, RepositoryRoot},
    snapshot::FolderSnapshot,
};

/// All repositories of a server, searched as one.
#[derive(Debug)]
pub(crate) struct Repository {
    /// In the order in which they were given and added. Never held while a root is asked for anything that blocks.
    roots: RwLock<Vec<Arc<dyn RepositoryRoot>>>,
    /// Which of its configurations a model is loaded with.
    config_name: ConfigName,
}

/// The models in all repositories at one time.
pub(crate) struct Listing {
    /// Those that exactly one repository holds.
    pub names: BTreeSet<String>,
    /// Whether every repository could be read.
    pub is_complete: bool,
}

impl Repository {
    pub fn new(roots: Vec<Arc<dyn RepositoryRoot>>, config_name: ConfigName) -> Self {
        Self { roots: RwLock::new(roots), config_name }
    }

    fn roots(&self) -> Vec<Arc<dyn RepositoryRoot>> {
        self.roots.read_unpoisoned().clone()
    }

    /// Adds a root that can be read. Of roots at one place, and of those that rename a folder to one name, there is one.
    pub fn add(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        let place = root.place();
        root.check().map_err(|_| RepositoryError::NotRegistered { place: place.clone() })?;
        let mut roots = self.roots.write_unpoisoned();
        if roots.iter().any(|known| known.place() == place) {
            return Err(RepositoryError::Registered { place }.into());
        }
        if let Some(model) = root.new_name()
            && roots.iter().any(|known| known.new_name() == Some(model))
        {
            return Err(RepositoryError::NameTaken { model: model.to_owned() }.into());
        }
        roots.push(root);
        Ok(())
    }

    /// Removes the root at a place. `None` where there is none.
    pub fn remove(&self, place: &str) -> Option<Arc<dyn RepositoryRoot>> {
        let mut roots = self.roots.write_unpoisoned();
        let at = roots.iter().position(|root| root.place() == place)?;
        Some(roots.remove(at))
    }

    pub fn config_name(&self) -> &ConfigName {
        &self.config_name
    }

    /// Fails on the first repository that cannot be read: the server should not start on a typing error.
    pub fn check(&self) -> Result<()> {
        self.roots().iter().try_for_each(|root| root.check())
    }

    /// Which models there are now.
    pub fn list(&self) -> Listing {
        let mut listing = Listing { is_complete: true, names: BTreeSet::new() };
        let mut ambiguous = BTreeSet::new();
        for root in self.roots() {
            match root.model_names() {
                Ok(names) => ambiguous
                    .extend(names.into_iter().filter(|name| !listing.names.insert(name.clone()))),
                Err(error) => {
                    log::error!("failed to poll model repository {root:?}: {error}");
                    listing.is_complete = false;
                }
            }
        }
        listing.names.retain(|name| !ambiguous.contains(name));
        listing
    }

    /// Names of all models in all repositories, sorted, each once. A repository that cannot be listed has none.
    pub fn model_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.roots().iter().filter_map(|root| root.model_names().ok()).flatten().collect();
        names.sort();
        names.dedup();
        names
    }

    /// The one repository that holds a model. `Ok(None)` when none does, and for a name that cannot be a folder's.
    pub fn find(&self, model: &str) -> Result<Option<Arc<dyn RepositoryRoot>>> {
        if !is_model_name(model) {
            return Ok(None);
        }
        let mut found = self.roots().into_iter().filter(|root| root.holds(model));
        let Some(root) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(RepositoryError::NotUnique { model: model.to_owned() }.into());
        }
        Ok(Some(root))
    }

    /// A model's folder, fetched where it is not on this machine.
    pub fn lease(&self, model: &str) -> Result<ModelFolder> {
        let root = self.find(model)?;
        let root = root.ok_or_else(|| RepositoryError::NoSuchModel { model: model.to_owned() })?;
        let folder = ModelFolder::open(model, root.lease(model)?)?;
        Ok(folder.renamed(root.new_name() == Some(model)))
    }

    /// What the folder of a model holds now. `None` when no repository has one that can be read.
    pub fn snapshot(&self, model: &str) -> Option<FolderSnapshot> {
        self.find(model).ok()??.snapshot(model).ok()
    }

    /// Whether several repositories hold a model of this name.
    pub fn is_ambiguous(&self, model: &str) -> bool {
        self.find(model).is_err()
    }

    /// The configuration of a model that exactly one repository holds, as written.
    pub fn read_config(&self, model: &str) -> io::Result<String> {
        match self.find(model) {
            Ok(Some(root)) => {
                self.config_name.read(|file| root.read_text(model, file)).map_err(|(_, e)| e)
            }
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests;

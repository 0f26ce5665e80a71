//! The model repositories: which models there are, and their folders.

mod error;
mod folder;
mod hidden_folder;
mod local;
mod root;
mod text_file;

use std::{io, sync::Arc};

use galatea_types::Result;

use self::error::RepositoryError;
pub(crate) use self::{
    folder::{CONFIG_FILE, MAX_MODEL_NAME, ModelFolder, is_model_name},
    hidden_folder::HiddenFolder,
    text_file::read_text_file,
};
pub use self::{
    local::LocalRoot,
    root::{FolderLease, RepositoryRoot},
};

/// All repositories of a server, searched as one.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    roots: Vec<Arc<dyn RepositoryRoot>>,
}

impl Repository {
    pub fn new(roots: Vec<Arc<dyn RepositoryRoot>>) -> Self {
        Self { roots }
    }

    /// Fails on the first repository that cannot be read: the server should not start on a typing error.
    pub fn check(&self) -> Result<()> {
        self.roots.iter().try_for_each(|root| root.check())
    }

    /// Names of all models in all repositories, sorted, each once. A repository that cannot be listed has none.
    pub fn model_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.roots.iter().filter_map(|root| root.model_names().ok()).flatten().collect();
        names.sort();
        names.dedup();
        names
    }

    /// The one repository that holds a model. `Ok(None)` when none does, and for a name that cannot be a folder's.
    pub fn find(&self, model: &str) -> Result<Option<&dyn RepositoryRoot>> {
        if !is_model_name(model) {
            return Ok(None);
        }
        let mut found = self.roots.iter().filter(|root| root.holds(model));
        let Some(root) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(RepositoryError::NotUnique { model: model.to_owned() }.into());
        }
        Ok(Some(&**root))
    }

    /// A model's folder, fetched where it is not on this machine.
    pub fn lease(&self, model: &str) -> Result<ModelFolder> {
        let root = self.find(model)?;
        let root = root.ok_or_else(|| RepositoryError::NoSuchModel { model: model.to_owned() })?;
        Ok(ModelFolder::open(model, root.lease(model)?)?)
    }

    /// The text of a file of a model that exactly one repository holds.
    pub fn read_text(&self, model: &str, file: &str) -> io::Result<String> {
        match self.find(model) {
            Ok(Some(root)) => root.read_text(model, file),
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests;

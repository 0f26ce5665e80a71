//! The model repositories: their models and folders.

mod config_name;
mod error;
mod folder;
mod followed_load;
mod hidden_folder;
mod layout;
mod local;
mod root;
mod single_model;
mod snapshot;
mod text_file;
mod version_files;

use std::{
    any::Any,
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::{Arc, RwLock},
};

use galatea_types::{Code, Error, Result, RwLockExt};

use self::error::advised;
pub(crate) use self::{
    config_name::ConfigName,
    folder::{MAX_MODEL_NAME, ModelFolder, is_model_name, version_number},
    followed_load::FollowedLoad,
    hidden_folder::HiddenFolder,
    layout::{ModelLayout, PlacedMistake},
    text_file::{advice as text_file_advice, read_text_file, system_words},
    version_files::version_files,
};
pub use self::{
    followed_load::{LoadEvent, LoadFollower},
    layout::{ForeignFile, foreign_file},
    local::LocalRoot,
    root::{FolderLease, RepositoryRoot},
    single_model::{SAVED_MODEL_FILE, SingleModelRoot, config_of_file},
    snapshot::FolderSnapshot,
};
use crate::model_id::ModelId;

/// All repositories of a server, searched as one.
#[derive(Debug)]
pub(crate) struct Repository {
    /// In the order in which they were given and added. The lock is never held during a call to a root that blocks.
    roots: RwLock<Vec<Root>>,
    /// The name of the configuration that models are loaded with.
    pub config_name: ConfigName,
    has_namespaces: bool,
}

#[derive(Clone, Debug)]
struct Root {
    /// The namespace of its models; empty if names are unique in the server.
    namespace: Arc<str>,
    root: Arc<dyn RepositoryRoot>,
}

/// The models in all repositories at one time.
pub(crate) struct Listing {
    /// Those that exactly one repository has.
    pub models: BTreeSet<ModelId>,
    /// True if every repository could be read.
    pub is_complete: bool,
}

/// While it exists, the contents of the repositories may be looked up only once.
#[must_use]
pub(crate) struct LookUpOnce {
    _of_roots: Vec<Box<dyn Any + Send>>,
}

impl Repository {
    /// `has_namespaces`: each repository is a namespace, so that several may have models of one name.
    pub fn new(
        roots: Vec<Arc<dyn RepositoryRoot>>,
        config_name: ConfigName,
        has_namespaces: bool,
    ) -> Self {
        let roots = roots.into_iter().map(|root| Root::new(root, has_namespaces)).collect();
        Self { roots: RwLock::new(roots), config_name, has_namespaces }
    }

    fn roots(&self) -> Vec<Root> {
        self.roots.read_unpoisoned().clone()
    }

    /// Adds a readable root. Roots must differ in their places, and those that rename a folder in their new names.
    pub fn add(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        let place = root.place();
        root.check().map_err(|_| {
            Error::invalid_arg(format!("failed to register '{place}', repository not found"))
        })?;
        let mut roots = self.roots.write_unpoisoned();
        if roots.iter().any(|known| known.root.place() == place) {
            let text = format!("model repository '{place}' has already been registered");
            return Err(Error::new(Code::AlreadyExists, text));
        }
        if let Some(model) = root.new_name()
            && roots.iter().any(|known| known.root.new_name() == Some(model))
        {
            let text = format!(
                "failed to register '{model}', there is a conflicting mapping for '{model}'"
            );
            return Err(Error::new(Code::AlreadyExists, text));
        }
        roots.push(Root::new(root, self.has_namespaces));
        Ok(())
    }

    /// Removes the root at a place, and returns its models. Returns none if there is no such root.
    pub fn remove(&self, place: &str) -> Vec<ModelId> {
        let mut roots = self.roots.write_unpoisoned();
        let at = roots.iter().position(|known| known.root.place() == place);
        let Some(Root { namespace, root }) = at.map(|at| roots.remove(at)) else {
            return Vec::new();
        };
        drop(roots);
        let names = root.new_name().map(str::to_owned).into_iter();
        let names = names.chain(root.model_names().unwrap_or_default());
        names.map(|name| ModelId::new(namespace.clone(), name)).collect()
    }

    /// Begins one operation that looks at all of them: see [`RepositoryRoot::begin_look`].
    pub fn begin_look(&self) -> LookUpOnce {
        let roots = self.roots().into_iter();
        LookUpOnce { _of_roots: roots.filter_map(|known| known.root.begin_look()).collect() }
    }

    /// Fails on the first unreadable repository: the server should not start with a typing error.
    pub fn check(&self) -> Result<()> {
        self.roots().iter().try_for_each(|known| known.root.check())
    }

    /// Returns the repositories that cannot be read now and have reported that in the log, with place and reason.
    pub fn problems(&self) -> Vec<(String, String)> {
        let roots = self.roots().into_iter();
        roots.filter_map(|known| Some((known.root.place(), known.root.problem()?))).collect()
    }

    /// Returns the oddities of the repositories themselves, each with the name of its repository.
    pub fn oddities(&self) -> Vec<(String, PlacedMistake)> {
        let of_root = |known: Root| {
            let found = known.root.local_folder().map(layout::inspect_root).unwrap_or_default();
            let place = known.root.place();
            found.into_iter().map(move |oddity| (place.clone(), oddity))
        };
        self.roots().into_iter().flat_map(of_root).collect()
    }

    pub fn list(&self) -> Listing {
        let mut listing = Listing { is_complete: true, models: BTreeSet::new() };
        let mut ambiguous = BTreeSet::new();
        for root in self.roots() {
            match root.models() {
                Ok(models) => {
                    ambiguous.extend(models.filter(|id| !listing.models.insert(id.clone())));
                }
                Err(error) => {
                    if root.root.problem().is_none() {
                        log::error!("failed to poll model repository {:?}: {error}", root.root);
                    }
                    listing.is_complete = false;
                }
            }
        }
        listing.models.retain(|id| !ambiguous.contains(id));
        listing
    }

    /// Returns all models in all repositories, each once. A repository that cannot be listed has none.
    pub fn models(&self) -> BTreeSet<ModelId> {
        self.roots().iter().filter_map(|root| root.models().ok()).flatten().collect()
    }

    /// Returns the models that a client may mean by a name; without namespaces always one, existing or not.
    pub fn named(&self, name: &str) -> Vec<ModelId> {
        if !self.has_namespaces {
            return vec![ModelId::global(name)];
        }
        let holds = |known: &Root| is_model_name(name) && known.root.holds(name);
        let id = |known: Root| ModelId::new(known.namespace, name);
        self.roots().into_iter().filter(holds).map(id).collect()
    }

    /// Returns the only repository that has a model. `Ok(None)` if none has it, and for a name that no folder can have.
    pub fn find(&self, id: &ModelId) -> Result<Option<Arc<dyn RepositoryRoot>>> {
        if !is_model_name(&id.name) {
            return Ok(None);
        }
        let holds = |known: &Root| known.namespace == id.namespace && known.root.holds(&id.name);
        let mut found = self.roots().into_iter().filter(holds);
        let Some(Root { root, .. }) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(advised(
                Code::InvalidArg,
                format!("failed to poll model '{id}': not unique across all model repositories"),
                &id.to_string(),
                "rename its folder in one of the repositories, or start the server with --model-namespacing",
            ));
        }
        Ok(Some(root))
    }

    /// Returns a model's folder, fetched if it is not on this machine.
    pub fn lease(&self, id: &ModelId) -> Result<ModelFolder> {
        let root = self.find(id)?;
        let root = root.ok_or_else(|| {
            Error::not_found(format!("no folder named '{id}' in the model repositories"))
        })?;
        let folder = ModelFolder::open(&id.name, root.lease(&id.name)?)?;
        Ok(folder.renamed(root.new_name() == Some(&*id.name)))
    }

    /// Returns the path of a model's file that a text calls `file`, for example `MODEL/1/model.onnx`. Returns
    /// `None` if it is not on this machine, or no file.
    pub fn path_of(&self, id: &ModelId, file: &str) -> Option<PathBuf> {
        let inside = file.strip_prefix(&*id.name)?;
        let inside = if inside.is_empty() { "" } else { inside.strip_prefix('/')? };
        self.find(id).ok()??.path_of(&id.name, inside)
    }

    /// Returns the present content of a model's folder; `None` if no repository has one that can be read.
    pub fn snapshot(&self, id: &ModelId) -> Option<FolderSnapshot> {
        self.find(id).ok()??.snapshot(&id.name).ok()
    }

    pub fn is_ambiguous(&self, id: &ModelId) -> bool {
        self.find(id).is_err()
    }

    /// Returns the configuration of a model that exactly one repository has, as written.
    pub fn read_config(&self, id: &ModelId) -> io::Result<String> {
        match self.find(id) {
            Ok(Some(root)) => {
                let found = self.config_name.read(|file| root.read_text(&id.name, file));
                found.map(|(_, text)| text).map_err(|(_, e)| e)
            }
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Root {
    fn new(root: Arc<dyn RepositoryRoot>, has_namespaces: bool) -> Self {
        let namespace = if has_namespaces { root.place().into() } else { Arc::default() };
        Self { namespace, root }
    }

    fn models(&self) -> io::Result<impl Iterator<Item = ModelId>> {
        let namespace = &self.namespace;
        let names = self.root.model_names()?.into_iter();
        Ok(names.map(move |name| ModelId::new(namespace.clone(), name)))
    }
}

#[cfg(test)]
mod tests;

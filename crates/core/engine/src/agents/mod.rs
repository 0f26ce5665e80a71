//! Repository agents check the files of a model before it is loaded, and may replace them. The configuration of the model names
//! them.

mod checksum;

use std::{collections::BTreeMap, fmt, mem, path::Path, sync::Arc};

use galatea_config::ConfigDraft;
use galatea_types::{Error, Result};

use self::checksum::ChecksumAgent;
use crate::repository::{FolderLease, FollowedLoad, LoadFollower, ModelFolder};

/// A repository agent, shared by all models that name it.
pub trait RepositoryAgent: fmt::Debug + Send + Sync {
    /// Checks a model before it is loaded. May block.
    ///
    /// # Errors
    /// The reason why the model must not be loaded.
    fn on_load(&self, model: &AgentContext<'_>) -> Result<AgentAnswer>;

    /// Returns its file, in quotes and with what it tells, if it is none of the program's. The default returns none.
    fn program(&self) -> Option<&str> {
        None
    }
}

/// A model that is about to be loaded, as an agent sees it.
#[derive(Clone, Copy, Debug)]
pub struct AgentContext<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The model's configuration as it was written.
    pub config: &'a ConfigDraft,
    /// The agent's parameters in that configuration.
    pub parameters: &'a BTreeMap<String, String>,
    /// The model's files: those of the repository, or of the previous agent.
    pub folder: &'a Path,
}

/// The answer of an agent that allows a model to be loaded.
#[derive(Default)]
pub struct AgentAnswer {
    /// The folder to load the model from, in place of the one that the agent was given. It is dropped when the model is
    /// unloaded.
    pub folder: Option<FolderLease>,
    /// Follows the events of this load. If no file of the ready versions has changed, they are kept, and the load is
    /// completed and unloaded at once.
    pub follower: Option<Box<dyn LoadFollower>>,
}

/// The agents that configurations may name.
#[derive(Clone)]
pub struct AgentRegistry {
    known: BTreeMap<String, Arc<dyn RepositoryAgent>>,
    /// Called for names that are not registered.
    search: Option<SearchFn>,
}

/// Finds an agent by its name, or says where it is not.
type SearchFn = Arc<dyn Fn(&str) -> Result<Arc<dyn RepositoryAgent>> + Send + Sync>;

/// Has the agent `checksum`, without any of the program.
impl Default for AgentRegistry {
    fn default() -> Self {
        let mut agents = Self { known: BTreeMap::new(), search: None };
        agents.register("checksum", Arc::new(ChecksumAgent));
        agents
    }
}

impl AgentRegistry {
    /// Adds an agent, which replaces one with the same name.
    pub fn register(&mut self, name: impl Into<String>, agent: Arc<dyn RepositoryAgent>) {
        self.known.insert(name.into(), agent);
    }

    /// Sets the search for agents that are not registered, e.g. in a folder. Its error becomes that of the model.
    pub fn search(
        &mut self,
        search: impl Fn(&str) -> Result<Arc<dyn RepositoryAgent>> + Send + Sync + 'static,
    ) {
        self.search = Some(Arc::new(search));
    }

    /// Calls every agent that a configuration names with the model's folder, in their order. Returns the folder to load the
    /// model from.
    pub(crate) fn visit(&self, config: &ConfigDraft, folder: &ModelFolder) -> Result<ModelFolder> {
        let mut folders = Folders { last: folder.lease(), before: Vec::new() };
        // Dropped before the folders, so that a follower learns of a failed load while the folders exist.
        let mut load = FollowedLoad::default();
        for agent in config.repository_agents() {
            let answer = self.find(&agent.name)?.on_load(&AgentContext {
                model: &folder.name,
                config,
                parameters: &agent.parameters,
                folder: folders.last.path(),
            })?;
            load.followers.extend(answer.follower);
            if let Some(folder) = answer.folder {
                let before = mem::replace(&mut folders.last, Arc::new(folder));
                folders.before.push(before);
            }
        }
        if load.followers.is_empty() && folders.before.is_empty() {
            return Ok(folder.clone());
        }
        folder.replaced(FolderLease::new(folders).followed(load))
    }

    /// Returns the names of those agents of a configuration that have a file of their own, with that file.
    pub(crate) fn programs(&self, config: &ConfigDraft) -> Vec<(String, String)> {
        let of_agent = |name: &str| {
            let agent = self.find(name).ok()?;
            Some((name.to_owned(), agent.program()?.to_owned()))
        };
        let mut programs: Vec<_> =
            config.repository_agents().iter().filter_map(|agent| of_agent(&agent.name)).collect();
        programs.dedup();
        programs
    }

    fn find(&self, name: &str) -> Result<Arc<dyn RepositoryAgent>> {
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        match &self.search {
            Some(search) => search(name),
            None => {
                let names = self.known.keys().map(|name| format!("'{name}'")).collect::<Vec<_>>();
                Err(Error::invalid_arg(format!(
                    "unable to find 'libtritonrepoagent_{name}.so' for repo agent '{name}': this server has {}",
                    names.join(", ")
                )))
            }
        }
    }
}

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

/// The folder of the last agent, and those that it may consist of.
struct Folders {
    last: Arc<FolderLease>,
    before: Vec<Arc<FolderLease>>,
}

impl AsRef<Path> for Folders {
    fn as_ref(&self) -> &Path {
        self.last.path()
    }
}

#[cfg(test)]
mod tests;

//! Finds the libraries of agents.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use galatea_engine::{AgentAnswer, AgentContext, RepositoryAgent};
use galatea_types::{Error, LockExt as _, Result};

use crate::{
    agent::LibraryAgent,
    library::{LIBRARIES, OpenAgent},
};

/// The agents in a folder. Each is opened when a model first names it, and stays open.
#[derive(Debug)]
pub struct AgentLibraries {
    directory: PathBuf,
    /// The agents that models have named, by their names.
    named: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// Its lock is held while the library begins, so that it begins once.
type Slot = Mutex<Option<Arc<OpenAgent>>>;

impl AgentLibraries {
    /// Makes the agents of the folder that has a folder for each.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, named: Mutex::default() }
    }

    /// Returns the library of an agent.
    ///
    /// # Errors
    /// `InvalidArg` if there is none, with Triton's text.
    pub fn library(&self, name: &str) -> Result<PathBuf> {
        LIBRARIES.find(&self.directory, name).ok_or_else(|| {
            Error::invalid_arg(format!(
                "unable to find '{}' for repo agent '{name}', searched: {}. Correct its name, name its folder with \
                 --repoagent-directory, or remove it from 'model_repository_agents'",
                LIBRARIES.file_name(name),
                self.directory.display()
            ))
        })
    }

    /// Returns the agent of this name, and opens its library if necessary. A failure is not kept: the next load tries again.
    ///
    /// # Errors
    /// Those of [`AgentLibraries::library`], why the library cannot be opened, or its own error.
    pub fn open(&self, name: &str) -> Result<Arc<dyn RepositoryAgent>> {
        let path = self.library(name)?;
        let slot = self.named.lock_unpoisoned().entry(name.to_owned()).or_default().clone();
        let mut held = slot.lock_unpoisoned();
        let agent = match &*held {
            Some(agent) => agent.clone(),
            None => Arc::new(OpenAgent::open(&path)?),
        };
        *held = Some(agent.clone());
        Ok(Arc::new(LibraryAgent(agent)))
    }

    /// Returns the names and libraries of the open agents, for people.
    pub fn opened(&self) -> Vec<(String, PathBuf)> {
        let named = self.named.lock_unpoisoned();
        let opened = named.iter().filter_map(|(name, slot)| {
            // One that is being opened is not open yet.
            let held = slot.try_lock().ok()?;
            Some((name.clone(), held.as_ref()?.path().to_owned()))
        });
        opened.collect()
    }
}

/// An agent whose library fits, and is not called: `galatea check` runs no code.
#[derive(Debug)]
pub struct UncalledAgent {
    /// Its file, and what that says about it.
    program: String,
}

impl RepositoryAgent for UncalledAgent {
    fn program(&self) -> Option<&str> {
        Some(&self.program)
    }

    fn on_load(&self, _: &AgentContext<'_>) -> Result<AgentAnswer> {
        Ok(AgentAnswer::default())
    }
}

impl AgentLibraries {
    /// Returns an agent that is not called, if the library of this name could be opened.
    ///
    /// # Errors
    /// Those of [`AgentLibraries::library`], and why the library could not be opened.
    pub fn find(&self, name: &str) -> Result<Arc<dyn RepositoryAgent>> {
        let path = self.library(name)?;
        let program = format!("'{}': {}", path.display(), LIBRARIES.inspect(&path)?);
        Ok(Arc::new(UncalledAgent { program }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_the_folder_of_its_agent() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("own")).expect("folder");
        let path = folder.path().join("own/libtritonrepoagent_own.so");
        std::fs::write(&path, "text").expect("file");
        let agents = AgentLibraries::new(folder.path().to_owned());
        assert_eq!(agents.library("own").expect("found"), path);
        for name in ["other", "../own", "", ".", "..", "o\0n"] {
            let error = agents.library(name).expect_err("none");
            let text =
                format!("unable to find 'libtritonrepoagent_{name}.so' for repo agent '{name}', ");
            assert!(error.message().starts_with(&text), "{error}");
        }
        let text = agents.open("own").expect_err("no library");
        assert!(text.message().contains("libtritonrepoagent_own.so' cannot be opened as a"));
        assert!(agents.opened().is_empty());
        let text = agents.find("own").expect_err("no library either");
        assert!(text.message().contains("libtritonrepoagent_own.so' cannot be opened as a"));
    }
}

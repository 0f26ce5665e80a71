//! Agents one after the other: the folders that they see, and what they are told.

use std::{fs, sync::Mutex};

use galatea_types::LockExt;

use super::*;
use crate::repository::LoadEvent::{self, LoadComplete, LoadFail, Unload, UnloadComplete};

/// Replaces the folder of a model, and writes down what it is told.
#[derive(Debug)]
struct Replacing {
    name: &'static str,
    told: Arc<Mutex<Vec<String>>>,
    refuses: bool,
}

struct Follower(&'static str, Arc<Mutex<Vec<String>>>);

impl LoadFollower for Follower {
    fn on_event(&self, event: LoadEvent) {
        self.1.lock_unpoisoned().push(format!("{} {event:?}", self.0));
    }
}

impl RepositoryAgent for Replacing {
    fn on_load(&self, model: &AgentContext<'_>) -> Result<AgentAnswer> {
        if self.refuses {
            return Err(Error::unavailable("refused"));
        }
        let folder = tempfile::tempdir().expect("folder");
        let text = fs::read_to_string(model.folder.join("text")).expect("text");
        fs::write(folder.path().join("text"), format!("{text} {}", self.name)).expect("text");
        let follower: Box<dyn LoadFollower> = Box::new(Follower(self.name, self.told.clone()));
        Ok(AgentAnswer { folder: Some(FolderLease::new(folder)), follower: Some(follower) })
    }
}

struct Visit {
    told: Arc<Mutex<Vec<String>>>,
    visited: Result<ModelFolder>,
    _root: tempfile::TempDir,
}

fn visit(agents: &[&str]) -> Visit {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let mut registry = AgentRegistry::default();
    for (name, refuses) in [("a", false), ("b", false), ("refusing", true)] {
        registry.register(name, Arc::new(Replacing { name, told: told.clone(), refuses }));
    }
    let root = tempfile::tempdir().expect("folder");
    fs::write(root.path().join("text"), "own").expect("text");
    let folder = ModelFolder::open("m", FolderLease::new(root.path().to_owned())).expect("folder");
    let agents = agents.iter().map(|name| format!("agents {{ name: '{name}' }}"));
    let text = format!("model_repository_agents {{ {} }}", agents.collect::<String>());
    let config = ConfigDraft::from(galatea_config::parse_text(&text).expect("valid"));
    Visit { told, visited: registry.visit(&config, &folder), _root: root }
}

#[test]
fn each_agent_gets_the_folder_of_the_previous_one_and_sees_the_unload() {
    let Visit { told, visited, _root } = visit(&["a", "checksum", "b"]);
    let folder = visited.expect("let pass");
    assert_eq!(fs::read_to_string(folder.path().join("text")).expect("text"), "own a b");
    let (lease, path) = (folder.lease(), folder.path().to_owned());
    for event in [LoadComplete, Unload, Unload] {
        lease.tell(event);
    }
    drop(folder);
    assert!(path.exists(), "a version may read it still");
    drop(lease);
    assert!(!path.exists());
    let stages = [(["b", "a"], LoadComplete), (["a", "b"], Unload), (["b", "a"], UnloadComplete)];
    let expected = stages.iter().flat_map(|(names, event)| names.map(|n| format!("{n} {event:?}")));
    assert_eq!(*told.lock_unpoisoned(), expected.collect::<Vec<_>>());
}

#[test]
fn earlier_agents_are_told_when_a_later_agent_refuses() {
    let visit = visit(&["a", "b", "refusing"]);
    assert_eq!(visit.visited.expect_err("refused").message(), "refused");
    let expected = ["b", "a"].map(|name| format!("{name} {LoadFail:?}"));
    assert_eq!(*visit.told.lock_unpoisoned(), expected);
}

#[test]
fn without_changes_by_agents_the_folder_is_kept() {
    let Visit { visited, _root, .. } = visit(&["checksum"]);
    assert_eq!(visited.expect("let pass").path(), _root.path());
}

#[test]
fn an_unknown_agent_is_reported_with_the_known_ones() {
    let error = visit(&["other"]).visited.expect_err("unknown");
    let text = "unable to find 'libtritonrepoagent_other.so' for repo agent 'other': this server has 'a', 'b', \
                'checksum', 'refusing'";
    assert_eq!(error.message(), text);
}

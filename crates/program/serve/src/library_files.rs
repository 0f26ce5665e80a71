//! The libraries made for Triton in the folders of this machine, for people.

use std::path::{Path, PathBuf};

use galatea_backend_c::LIBRARIES as BACKENDS;
use galatea_triton_agent::LIBRARIES as AGENTS;
use galatea_triton_c::LibraryKind;
use galatea_triton_cache::LIBRARIES as CACHES;
use galatea_types::Result;

use crate::{DEFAULT_AGENT_DIRECTORY, DEFAULT_BACKEND_DIRECTORY};

/// Triton's folder of caches.
pub const DEFAULT_CACHE_DIRECTORY: &str = "/opt/tritonserver/caches";

/// Backends that the server has itself, whose library only models that ask for it get.
const OWN_BACKENDS: [&str; 5] = ["onnxruntime", "openvino", "python", "pytorch", "tensorflow"];
/// Caches of the same sort.
const OWN_CACHES: [&str; 2] = ["local", "redis"];

/// The folders that have a folder for each library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFolders {
    /// `--backend-directory`.
    pub backends: PathBuf,
    /// `--cache-directory`.
    pub caches: PathBuf,
    /// `--repoagent-directory`.
    pub agents: PathBuf,
}

impl Default for LibraryFolders {
    fn default() -> Self {
        Self {
            backends: DEFAULT_BACKEND_DIRECTORY.into(),
            caches: DEFAULT_CACHE_DIRECTORY.into(),
            agents: DEFAULT_AGENT_DIRECTORY.into(),
        }
    }
}

impl LibraryFolders {
    /// Describes each library in a line: its file, the version of the interface, and who gets it. No code of it runs.
    pub fn describe(&self) -> Vec<String> {
        let lines = |kind: &LibraryKind, folder: &Path, line: fn(&str) -> String| {
            let found = kind.all_in(folder).into_iter();
            found.map(|(name, path)| with_facts(&line(&name), kind, &path)).collect::<Vec<_>>()
        };
        [
            lines(&BACKENDS, &self.backends, of_backend),
            lines(&CACHES, &self.caches, of_cache),
            lines(&AGENTS, &self.agents, |name| {
                format!(
                    "repository agent {name}, for models that name it in model_repository_agents"
                )
            }),
        ]
        .concat()
    }
}

/// Returns the facts about the library of a cache: its file, and the version of the interface.
///
/// # Errors
/// The reason why it could not be opened.
pub fn describe_cache(name: &str, path: &Path) -> Result<String> {
    let facts = CACHES.inspect(path)?;
    Ok(format!("response cache '{name}' is '{}': {facts}", path.display()))
}

fn of_backend(name: &str) -> String {
    match OWN_BACKENDS.contains(&name) {
        true => format!("backend {name}, for models with the parameter BACKEND_LIBRARY \"triton\""),
        false => format!("backend {name}, for models with backend: \"{name}\""),
    }
}

fn of_cache(name: &str) -> String {
    match OWN_CACHES.contains(&name) {
        true => format!("cache {name}, for --cache-config={name},library=triton"),
        false => format!("cache {name}, for --cache-config={name},..."),
    }
}

fn with_facts(title: &str, kind: &LibraryKind, path: &Path) -> String {
    match kind.inspect(path) {
        Ok(facts) => format!("{title}: {} ({facts})", path.display()),
        Err(error) => format!("{title}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_library_has_a_line_that_says_who_gets_it() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |name: &str| folder.path().join(name);
        for file in [
            "backends/mine/libtriton_mine.so",
            "backends/python/libtriton_python.so",
            "backends/words/model.py",
            "caches/local/libtritoncache_local.so",
            "agents/a/libtritonrepoagent_a.so",
        ] {
            fs::create_dir_all(at(file).parent().expect("folder")).expect("folder");
            fs::write(at(file), "text").expect("file");
        }
        let folders =
            LibraryFolders { backends: at("backends"), caches: at("caches"), agents: at("agents") };
        let lines = folders.describe();
        let begins: Vec<&str> =
            lines.iter().map(|line| line.split_once(": '").map_or(&**line, |(b, _)| b)).collect();
        assert_eq!(
            begins,
            [
                "backend mine, for models with backend: \"mine\"",
                "backend python, for models with the parameter BACKEND_LIBRARY \"triton\"",
                "cache local, for --cache-config=local,library=triton",
                "repository agent a, for models that name it in model_repository_agents",
            ]
        );
        let reason =
            "libtriton_mine.so' cannot be opened as a Triton backend: it is no shared library";
        assert!(lines.first().is_some_and(|line| line.contains(reason)), "{lines:?}");
        let nowhere = at("nowhere");
        let none =
            LibraryFolders { backends: nowhere.clone(), caches: nowhere.clone(), agents: nowhere };
        assert!(none.describe().is_empty());
    }
}

//! Opens the repositories of the command line for the engine. Only this module distinguishes kinds of repositories.

pub mod model_path;
mod poller;
pub(crate) mod remote;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, bail};
use galatea_engine::{LocalRoot, RepositoryRoot};

pub use self::{
    poller::Poller,
    remote::{RemoteRepositories, RepositoryCacheOptions},
};
use crate::options::ServeOptions;

/// Opens the repositories that were given by option, and those of paths without an option.
pub fn open(options: &ServeOptions) -> Result<Vec<Arc<dyn RepositoryRoot>>> {
    let remote = RemoteRepositories::new(&options.runtimes.environment, &options.repository_cache);
    let mut remote = remote.ended_by(options.runtimes.stop.clone());
    let mut roots = of_options(&options.repositories, options.exits_on_error, &mut remote)?;
    for path in different(&options.paths) {
        match remote.open(path) {
            Some(root) => roots.push(checked(root?, options.exits_on_error, String::new)?),
            None => roots.push(model_path::open(path)?),
        }
    }
    Ok(roots)
}

/// Opens each repository once, however it is spelled. With `ends_on_error`, a wrong path ends the start at once; otherwise the
/// engine reports that it is not ready.
fn of_options(
    given: &[PathBuf],
    ends_on_error: bool,
    remote: &mut RemoteRepositories<'_>,
) -> Result<Vec<Arc<dyn RepositoryRoot>>> {
    let mut roots = Vec::new();
    for path in different(given) {
        let root = match remote.open(path) {
            Some(root) => checked(root?, ends_on_error, String::new)?,
            None => checked(LocalRoot::at(path), ends_on_error, || advice(path))?,
        };
        roots.push(root);
    }
    Ok(roots)
}

fn checked(
    root: Arc<dyn RepositoryRoot>,
    ends_on_error: bool,
    advice: impl FnOnce() -> String,
) -> Result<Arc<dyn RepositoryRoot>> {
    match root.check() {
        Err(error) if ends_on_error => {
            bail!("creating server: {} - {error}{}", error.code().as_str(), advice())
        }
        _ => Ok(root),
    }
}

/// Advice after the reason why a local repository cannot be read.
fn advice(path: &Path) -> String {
    match (path.is_file(), path.exists()) {
        (true, _) => format!("; `galatea serve {}` serves one model file", path.display()),
        (_, false) => {
            "; --model-repository names a folder that has a folder for each model".to_owned()
        }
        _ => String::new(),
    }
}

/// Returns the first spelling of each folder.
fn different(given: &[PathBuf]) -> Vec<&PathBuf> {
    let mut seen = Vec::new();
    let is_new = |path: &&PathBuf| {
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let is_new = !seen.contains(&place);
        seen.push(place);
        is_new
    };
    given.iter().filter(is_new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(given: &[PathBuf], ends_on_error: bool) -> Result<Vec<Arc<dyn RepositoryRoot>>> {
        let (environment, settings) = Default::default();
        let mut remote = RemoteRepositories::new(&environment, &settings);
        of_options(given, ends_on_error, &mut remote)
    }

    #[test]
    fn a_folder_given_twice_is_one_repository() {
        let folder = tempfile::tempdir().expect("folder");
        let path = |tail: &str| PathBuf::from(format!("{}{tail}", folder.path().display()));
        fs::create_dir(path("/b")).expect("folder");
        let given = [path(""), path("/"), path("/b/.."), path("/b"), path("")];
        assert_eq!(opened(&given, true).expect("both are there").len(), 2);
    }

    #[test]
    fn a_missing_repository_ends_the_start_unless_errors_are_tolerated() {
        let given = [PathBuf::from("/nonexistent/models")];
        let error = opened(&given, true).expect_err("not there").to_string();
        assert!(
            error.starts_with(
                "creating server: Internal - failed to stat file /nonexistent/models: "
            ),
            "{error}"
        );
        assert_eq!(opened(&given, false).expect("the engine says so").len(), 1);
    }
}

//! `galatea check` and `galatea config`: inspect a repository without serving it.

mod cache;
mod flags;
mod model;
mod policy;
mod report;

use std::{
    fmt::Display,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use galatea_command_line::{help, read};
use galatea_config::{RawModelConfig, Severity};
use galatea_engine::{
    EngineOptions, LocalRoot, RepositoryRoot, SingleModelRoot, complete, inspect,
};
use galatea_serve::{
    DEFAULT_AGENT_DIRECTORY, DEFAULT_BACKEND_DIRECTORY, Gpus, RemoteRepositories,
    add_uncalled_agents, inspectors, model_path,
};
use galatea_types::{Environment, Result};

pub use self::flags::CheckFlags;
use crate::terminal::{self, HELP_WIDTH, fail, print};

/// Exit code: there are mistakes.
const MISTAKES: u8 = 1;
/// Exit code: the command line is wrong, or nothing could be checked.
const USAGE: u8 = 2;

pub fn run(words: Vec<String>, environment: &Environment) -> ExitCode {
    let flags = match read::<CheckFlags>(words) {
        Ok(Some(flags)) if flags.has_nothing_to_check() => {
            return refuse("check", "a repository is missing: its folder is expected");
        }
        Ok(Some(flags)) => flags,
        Ok(None) => return print(&help::<CheckFlags>(flags::CHECK, HELP_WIDTH)),
        Err(error) => return refuse("check", error),
    };
    let roots = match flags.roots(environment) {
        Ok(roots) => roots,
        Err(error) => return refuse("check", error),
    };
    let cache = match cache::findings(&flags.response_cache, environment) {
        Ok(found) => found,
        Err(error) => return refuse("check", error),
    };
    let options = flags.options(roots);
    let mut inspection = match inspect(&options, flags.inspectors(environment)) {
        Ok(inspection) => inspection,
        Err(error) => {
            fail(error);
            return ExitCode::from(USAGE);
        }
    };
    inspection.findings.extend(cache);
    inspection.findings.extend(flags.auth_policy.iter().flat_map(|path| policy::findings(path)));
    let policies = usize::from(flags.auth_policy.is_some());
    let text = match flags.is_json {
        true => report::json(&inspection, policies),
        false => {
            let width = terminal::width(environment).unwrap_or(usize::MAX);
            report::text(&inspection, policies, width, has_colours(environment))
        }
    };
    let has_mistakes = inspection.count(Severity::Error) > 0;
    let printed = print(&text);
    if has_mistakes { ExitCode::from(MISTAKES) } else { printed }
}

/// Returns the configuration of the model in `folder`, completed from its file, as `galatea config` prints it.
pub fn completed_config(folder: &Path, name: &str) -> Result<RawModelConfig> {
    let flags = CheckFlags::default();
    let root = SingleModelRoot::of_folder(folder, folder, name.to_owned());
    let (completed, _) =
        complete(&flags.options(vec![root]), flags.inspectors(&Environment::default()), name)?;
    Ok(completed)
}

pub fn run_config(words: Vec<String>, environment: &Environment) -> ExitCode {
    let flags = match read::<CheckFlags>(words) {
        Ok(Some(flags)) => flags,
        Ok(None) => return print(&help::<CheckFlags>(flags::CONFIG, HELP_WIDTH)),
        Err(error) => return refuse("config", error),
    };
    let [path] = &flags.paths[..] else {
        return refuse("config", "a model is missing: its folder or file is expected");
    };
    match model::completed(path, &flags, environment) {
        Ok(text) => print(&text),
        Err(error) => fail(error),
    }
}

impl CheckFlags {
    fn has_nothing_to_check(&self) -> bool {
        self.paths.is_empty() && self.repositories.is_empty() && self.auth_policy.is_none()
    }

    /// Returns the repositories that `serve` would open for the paths.
    fn roots(&self, environment: &Environment) -> anyhow::Result<Vec<Arc<dyn RepositoryRoot>>> {
        let mut remote = RemoteRepositories::new(environment, &self.cache);
        let mut roots = Vec::new();
        for path in &self.repositories {
            roots.push(remote.open(path).unwrap_or_else(|| Ok(LocalRoot::at(path)))?);
        }
        for path in &self.paths {
            roots.push(match remote.open(path) {
                Some(root) => root?,
                None => model_path::open(path)?,
            });
        }
        Ok(roots)
    }

    fn options(&self, repositories: Vec<Arc<dyn RepositoryRoot>>) -> EngineOptions {
        let backend_directory = Some(self.backend_directory());
        let mut options = EngineOptions { repositories, backend_directory, ..self.engine.clone() };
        Gpus::find().add_to(&mut options);
        let agents = self.agent_directory.clone();
        add_uncalled_agents(&mut options, agents.unwrap_or_else(|| DEFAULT_AGENT_DIRECTORY.into()));
        options
    }

    /// `environment`: its `PATH` has the Python that reads code of models.
    fn inspectors(&self, environment: &Environment) -> galatea_engine::InspectorRegistry {
        inspectors::registry(&self.engine.backend_config, self.backend_directory(), environment)
    }

    fn backend_directory(&self) -> PathBuf {
        let given = self.backend_directory.clone();
        given.unwrap_or_else(|| PathBuf::from(DEFAULT_BACKEND_DIRECTORY))
    }
}

/// Returns true if colours are wanted, as in <https://no-color.org>.
fn has_colours(environment: &Environment) -> bool {
    io::stdout().is_terminal() && environment.get("NO_COLOR").is_none()
}

fn refuse(command: &str, error: impl Display) -> ExitCode {
    terminal::refuse(
        error,
        format_args!("galatea {command} ...; `galatea {command} --help` says more"),
    );
    ExitCode::from(USAGE)
}

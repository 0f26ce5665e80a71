//! What a worker is started as: the interpreter of an environment, with this crate's package.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::Result;
use galatea_worker::{IsolationLevel, Program, WorkerIdentity};

use crate::{
    defaults::ModelDefaults, environment::Environment, package::Package,
    temporary_folder::TemporaryFolder, worker_rules::ModelPaths,
};

/// How a worker is called. `instance`: `None` for one that only completes a configuration.
pub(crate) fn identity(model: Arc<str>, version: i64, instance: Option<String>) -> WorkerIdentity {
    WorkerIdentity { role: "Python worker", model, version, instance }
}

/// The folders of a model, and the file with its code.
pub(crate) struct ModelFolders<'a> {
    pub model: &'a Path,
    pub version: &'a Path,
    pub code: &'a Path,
}

/// What a worker is started as, and what it needs for as long as it may be started again.
pub(crate) struct Start {
    pub program: Arc<Program>,
    /// Of an isolated model.
    pub temporary: Option<TemporaryFolder>,
}

impl Start {
    /// The interpreter running the package.
    pub fn new(
        environment: &Environment,
        package: &Package,
        folders: &ModelFolders<'_>,
        defaults: &ModelDefaults,
    ) -> Result<Self> {
        let rules = &defaults.rules;
        let temporary = match rules.level() {
            IsolationLevel::None => None,
            _ => Some(TemporaryFolder::create()?),
        };
        let sandbox = temporary.as_ref().and_then(|temporary| {
            let paths = ModelPaths {
                model: folders.model,
                version: folders.version,
                code: folders.code.parent().unwrap_or(folders.code),
                readable: readable(environment, package),
                temporary: temporary.path(),
            };
            rules.sandbox(paths, &defaults.variables)
        });
        let variables = [("PYTHONUNBUFFERED".into(), "1".into())]
            .into_iter()
            .chain(environment.variables.iter().cloned())
            .chain(temporary.iter().flat_map(|temporary| temporary_variables(temporary.path())));
        let program = Program {
            role: "interpreter",
            path: environment.python.clone(),
            arguments: vec![package.folder().into()],
            variables: variables.collect(),
            inherits_variables: true,
            withheld_variables: rules.withheld(&defaults.variables),
            memory_limit: rules.memory(),
            sandbox,
            description: environment.description.clone(),
        };
        Ok(Self { program: Arc::new(program), temporary })
    }
}

/// For the processes of any model in this environment.
fn readable(environment: &Environment, package: &Package) -> Vec<PathBuf> {
    let mut readable = environment.folders.clone();
    readable.push(package.folder().to_owned());
    readable
}

/// Where libraries put temporary files, and PyTorch the code that it compiles.
fn temporary_variables(folder: &Path) -> [(OsString, OsString); 3] {
    ["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), folder.into()))
}

/// The level that a program is isolated at, which the worker tells in its errors; `None`: it is not.
pub(crate) fn isolation(program: &Program) -> Option<&'static str> {
    program.sandbox.as_ref().map(|sandbox| sandbox.level.name())
}

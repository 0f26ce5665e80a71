//! Makes the program of a worker: the interpreter of an environment, with this crate's package.

use std::sync::Arc;

use galatea_types::Result;
use galatea_worker::{IsolationLevel, Program, WorkerIdentity};

use crate::{
    defaults::ModelDefaults, environment::Environment, package::Package,
    temporary_folder::TemporaryFolder, worker_rules::ModelFolders,
};

/// Returns the identity of a worker. `instance`: `None` for one that only completes a configuration.
pub(crate) fn identity(model: Arc<str>, version: i64, instance: Option<String>) -> WorkerIdentity {
    WorkerIdentity { role: "Python worker", model, version, instance }
}

/// The program of a worker, with all it needs for as long as it may be started again.
pub(crate) struct WorkerStart {
    pub program: Arc<Program>,
    /// Temporary folder of an isolated model.
    pub temporary: Option<TemporaryFolder>,
}

impl WorkerStart {
    /// Makes the start of an interpreter that runs the package.
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
            let own = [&environment.folders[..], std::slice::from_ref(&package.folder)].concat();
            rules.sandbox(folders, own, temporary.path(), &defaults.variables)
        });
        let variables = [("PYTHONUNBUFFERED".into(), "1".into())]
            .into_iter()
            .chain(environment.variables.iter().cloned())
            .chain(temporary.iter().flat_map(TemporaryFolder::variables));
        let program = Program {
            role: "interpreter",
            path: environment.python.clone(),
            arguments: vec![(&package.folder).into()],
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

/// Returns the isolation level of a program, which the worker names in its errors. `None`: it is not isolated.
pub(crate) fn isolation(program: &Program) -> Option<&'static str> {
    program.sandbox.as_ref().map(|sandbox| sandbox.level.name())
}

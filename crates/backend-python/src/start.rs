//! What a worker is started as: the interpreter of an environment, with this crate's package.

use std::sync::Arc;

use galatea_worker::{Program, WorkerIdentity};

use crate::{environment::Environment, package::Package};

/// How a worker is called. `instance`: `None` for one that only completes a configuration.
pub(crate) fn identity(model: Arc<str>, version: i64, instance: Option<String>) -> WorkerIdentity {
    WorkerIdentity { role: "Python worker", model, version, instance }
}

/// The interpreter running the package.
pub(crate) fn program(environment: &Environment, package: &Package) -> Program {
    let unbuffered = [("PYTHONUNBUFFERED".into(), "1".into())];
    Program {
        role: "interpreter",
        path: environment.python.clone(),
        arguments: vec![package.folder().into()],
        variables: unbuffered.into_iter().chain(environment.variables.iter().cloned()).collect(),
        inherits_variables: true,
        description: environment.description.clone(),
    }
}

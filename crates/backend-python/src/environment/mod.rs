//! Which Python interpreter runs a model, and in which environment.
//!
//! The first of these that a model has: the parameter `EXECUTION_ENV_PATH`; a `requirements.txt` or
//! `pyproject.toml` beside it, from which an environment is built once; what `--backend-config=python,...`
//! names; `python3` on `PATH`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use galatea_types::{Error, Result};

/// What decides about a model's environment.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentRequest<'a> {
    /// For messages only: it never becomes part of a path.
    pub model_name: &'a str,
    pub model_dir: &'a Path,
    pub version_dir: &'a Path,
    /// `parameters` of the model's configuration.
    pub parameters: &'a BTreeMap<String, String>,
    /// `--backend-config=python,KEY=VALUE`.
    pub backend_config: &'a BTreeMap<String, String>,
}

/// A Python interpreter that is fit to run a model, and how to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The interpreter to execute.
    pub python: PathBuf,
    /// To be set over those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// For the log, e.g. `CPython 3.11.7 in venv /path`.
    pub description: String,
}

/// Finds the model's environment, building or unpacking it when that has not been done before. May take
/// minutes then: never call it where requests wait.
pub fn resolve(request: &EnvironmentRequest<'_>) -> Result<Environment> {
    Err(Error::unavailable(format!("no Python interpreter for model '{}'", request.model_name)))
}

//! The request for a model's environment, and the result.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use galatea_backend::PathRules;
use galatea_runtimes::{ProgressMaker, data_folder};
use galatea_types::{Environment as Variables, Result};

use super::{
    confinement::Confinement,
    lease::EnvironmentLease,
    options::{self, Options},
};

/// Parameter of a model's configuration that names its environment.
pub(crate) const EXECUTION_ENV_PATH: &str = "EXECUTION_ENV_PATH";

/// Settings of `--backend-config=python,KEY=VALUE` that are read here.
pub(crate) const SETTINGS: [&str; 8] = [
    DEFAULT_ENVIRONMENT,
    PYTHON_INTERPRETER,
    options::BUILD_TIMEOUT,
    options::MAX_BYTES,
    options::MAX_FILES,
    options::CACHE_BYTES,
    options::CACHE_DAYS,
    options::ADD_NUMPY,
];
pub(super) const DEFAULT_ENVIRONMENT: &str = "default-environment";
pub(super) const PYTHON_INTERPRETER: &str = "python-interpreter";

/// The settings that determine a model's environment.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentRequest<'a> {
    /// Name of the model, for messages only: it never becomes part of a path.
    pub model_name: &'a str,
    /// Folder of the model.
    pub model_dir: &'a Path,
    /// Folder of the version that is loaded.
    pub version_dir: &'a Path,
    /// `parameters` of the model's configuration.
    pub parameters: &'a BTreeMap<String, String>,
    /// Rules for the paths that `EXECUTION_ENV_PATH` may name.
    pub paths: &'a PathRules,
    /// `--backend-config=python,KEY=VALUE`: `python-interpreter`, `default-environment`, and the limits of
    /// `environment-...`.
    pub backend_config: &'a BTreeMap<String, String>,
    /// Limits of all programs that come with the model.
    pub confinement: &'a Confinement,
    /// Shows the progress of a build.
    pub progress: &'a ProgressMaker,
}

/// A request, with the settings and variables that apply to it.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub request: &'a EnvironmentRequest<'a>,
    pub variables: &'a Variables,
    pub options: Options,
}

/// Returns the folder of all environments that are kept.
pub fn cache_folder(variables: &Variables) -> Result<PathBuf> {
    data_folder(variables).map(|folder| folder.join("python-environments"))
}

/// A Python interpreter that can run a model, and how to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The interpreter to execute.
    pub python: PathBuf,
    /// Variables to set over those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// Folders that a worker reads: the environment's own, and those it searches for packages.
    pub folders: Vec<PathBuf>,
    /// Description for the log, e.g. `CPython 3.11.7 in venv /path`.
    pub description: String,
    /// Keeps the environment in the cache for as long as a worker runs in it.
    pub lease: EnvironmentLease,
}

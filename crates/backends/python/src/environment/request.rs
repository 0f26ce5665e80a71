//! What decides on a model's environment, and what is decided.

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

/// Parameter of a model's configuration.
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

/// What decides on a model's environment.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentRequest<'a> {
    /// For messages only: it never becomes part of a path.
    pub model_name: &'a str,
    /// Folder of the model.
    pub model_dir: &'a Path,
    /// Folder of the version that is loaded.
    pub version_dir: &'a Path,
    /// `parameters` of the model's configuration.
    pub parameters: &'a BTreeMap<String, String>,
    /// Where `EXECUTION_ENV_PATH` may lead.
    pub paths: &'a PathRules,
    /// `--backend-config=python,KEY=VALUE`: `python-interpreter`, `default-environment`, and the limits of
    /// `environment-...`.
    pub backend_config: &'a BTreeMap<String, String>,
    /// Around all programs that come with the model.
    pub confinement: &'a Confinement,
    /// Shows how far a build is.
    pub progress: &'a ProgressMaker,
}

/// A request, with the settings and variables that decide how it is done.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub request: &'a EnvironmentRequest<'a>,
    pub variables: &'a Variables,
    pub options: Options,
}

/// The folder of all environments that are kept.
pub fn cache_folder(variables: &Variables) -> Result<PathBuf> {
    data_folder(variables).map(|folder| folder.join("python-environments"))
}

/// A Python interpreter that is able to run a model, and how to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The interpreter to execute.
    pub python: PathBuf,
    /// To be set over those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// What a worker reads of it: its folders, and those that it searches for packages.
    pub folders: Vec<PathBuf>,
    /// For the log, e.g. `CPython 3.11.7 in venv /path`.
    pub description: String,
    /// Keeps what was built or unpacked in the cache for as long as a worker runs in it.
    pub lease: EnvironmentLease,
}

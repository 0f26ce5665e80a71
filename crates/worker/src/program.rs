//! The program that a worker runs.

use std::{ffi::OsString, path::PathBuf};

/// What is executed as a worker. The numbers of its four descriptors follow its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it is called in errors, e.g. `interpreter`.
    pub role: &'static str,
    /// The file to execute.
    pub path: PathBuf,
    /// Before the descriptors.
    pub arguments: Vec<OsString>,
    /// Environment variables to set.
    pub variables: Vec<(OsString, OsString)>,
    /// Whether it gets this process's environment variables too.
    pub inherits_variables: bool,
    /// For the log.
    pub description: String,
}

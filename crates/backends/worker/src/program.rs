//! The program that a worker runs.

use std::{ffi::OsString, path::PathBuf};

use crate::sandbox::Sandbox;

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
    /// Those of this process that it does not get all the same.
    pub withheld_variables: Vec<OsString>,
    /// Bytes of data that each of its processes may have; `None`: as many as this one.
    pub memory_limit: Option<u64>,
    /// What it may reach; `None`: what this process may.
    pub sandbox: Option<Sandbox>,
    /// For the log.
    pub description: String,
}

impl Program {
    /// Names what may keep the program from running, where it is confined.
    pub(crate) fn isolation_hint(&self) -> String {
        self.sandbox.as_ref().map_or_else(String::new, |sandbox| {
            format!(
                " (with --python-isolation={}: the program and its libraries must lie where --python-readable-path allows it)",
                sandbox.level.name()
            )
        })
    }
}

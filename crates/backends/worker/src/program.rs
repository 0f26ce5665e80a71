//! The program that a worker runs.

use std::{ffi::OsString, path::PathBuf};

use crate::sandbox::Sandbox;

/// The program that is executed as a worker. The numbers of its four descriptors follow its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of the program in errors, e.g. `interpreter`.
    pub role: &'static str,
    /// The file to execute.
    pub path: PathBuf,
    /// Arguments before the descriptors.
    pub arguments: Vec<OsString>,
    /// Environment variables to set.
    pub variables: Vec<(OsString, OsString)>,
    /// True if it gets this process's environment variables too.
    pub inherits_variables: bool,
    /// Variables of this process that it does not get even then.
    pub withheld_variables: Vec<OsString>,
    /// Bytes of data that each of its processes may have; `None`: as many as this one.
    pub memory_limit: Option<u64>,
    /// The limits of its access. `None`: it may reach what this process may.
    pub sandbox: Option<Sandbox>,
    /// Description for the log.
    pub description: String,
}

impl Program {
    /// Returns a hint for errors that isolation may keep the program from running, if it is confined.
    pub(crate) fn isolation_hint(&self) -> String {
        self.sandbox.as_ref().map_or_else(String::new, |sandbox| {
            format!(
                " (with --python-isolation={}: the program and its libraries must lie where --python-readable-path allows it)",
                sandbox.level.name()
            )
        })
    }
}

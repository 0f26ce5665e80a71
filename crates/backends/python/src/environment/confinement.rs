//! The limits of the programs that make an environment.
//!
//! They run code that comes with a model: build scripts of packages, an interpreter out of an archive. The same limits apply
//! to them as to the model's workers.

use std::{ffi::OsString, path::PathBuf, process::Command, time::Duration};

use galatea_types::Stop;
use galatea_worker::{IsolationLevel, Sandbox};

use super::command::{self, Failure, FailureKind, Limits, ProgramFollower};
use crate::temporary_folder::TemporaryFolder;

/// The limits of the programs that make a model's environment.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    /// A sandbox of the model's isolation level, with the files that all workers reach. `None`: programs reach what the
    /// server does.
    pub sandbox: Option<Sandbox>,
    /// Variables of the server that the programs do not get.
    pub withheld: Vec<OsString>,
    /// Ends the programs, and all other work on an environment, when it is requested.
    pub stop: Stop,
}

/// Access that one program needs besides.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramAccess {
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// True if it fetches packages. No filter of the kernel knows the index, so the whole network is open to it.
    pub has_network: bool,
}

/// Beginnings of installers' settings. They may hold the password of an index, without which nothing can be fetched.
const OF_INSTALLERS: [&str; 2] = ["PIP_", "UV_"];

impl Confinement {
    /// Returns no limits, for programs that the operator has named, and those on `PATH`.
    pub fn none() -> Self {
        Self::default()
    }

    pub(super) fn lifted(&self) -> Self {
        Self { stop: self.stop.clone(), ..Self::none() }
    }

    /// Runs a program to its end: see [`command::run`].
    pub(super) fn run(
        &self,
        mut command: Command,
        reach: ProgramAccess,
        timeout: Duration,
        follower: &mut dyn ProgramFollower,
    ) -> Result<(), Failure> {
        let not_started =
            |error| Failure { kind: FailureKind::NotStarted(error), lines: Vec::new() };
        let limits = Limits { time: timeout, stop: &self.stop };
        let Some(sandbox) = &self.sandbox else { return command::run(command, limits, follower) };
        let temporary =
            TemporaryFolder::create().map_err(|e| not_started(std::io::Error::other(e)))?;
        for variable in
            self.withheld.iter().filter(|name| !is_of_installer(name, reach.has_network))
        {
            command.env_remove(variable);
        }
        command.envs(temporary.variables());
        let mut sandbox = sandbox.clone();
        if reach.has_network {
            sandbox.level = IsolationLevel::Standard;
        }
        sandbox.readable.extend(reach.readable);
        sandbox.writable = reach.writable;
        sandbox.writable.push(temporary.path().to_owned());
        sandbox.confine(&mut command).map_err(not_started)?;
        command::run(command, limits, follower)
    }

    pub(super) fn is_in_force(&self) -> bool {
        self.sandbox.is_some()
    }
}

fn is_of_installer(name: &OsString, has_network: bool) -> bool {
    has_network && OF_INSTALLERS.iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
}

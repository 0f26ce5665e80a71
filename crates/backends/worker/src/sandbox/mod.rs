//! The limits of a worker's process: a list of files it reaches, and system calls that are refused.
//!
//! The lists are made in the server, before the fork. Between fork and exec only system calls run, so that the program and
//! all that it starts are confined from the first instruction on.

mod barriers;
mod calls;
mod filters;
mod kernel;
mod level;
mod paths;
mod ruleset;
mod system_files;

use std::{io, os::unix::process::CommandExt, path::PathBuf, process::Command};

pub(crate) use self::barriers::Barriers;
pub use self::{kernel::KernelSupport, level::IsolationLevel, system_files::secret_files};

/// The limits of a worker's process.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// The level of isolation.
    pub level: IsolationLevel,
    /// Files and folders it may read, beside those of the system. Missing ones are left out.
    pub readable: Vec<PathBuf>,
    /// Files and folders it may read and change.
    pub writable: Vec<PathBuf>,
    /// Files and folders that it may not reach even if they lie below an allowed folder.
    pub secret: Vec<PathBuf>,
}

impl Sandbox {
    /// Confines the process that `command` starts from its first instruction on, with all means of the kernel.
    ///
    /// # Errors
    /// When the kernel rejects the rules.
    pub fn confine(&self, command: &mut Command) -> io::Result<()> {
        let barriers = self.prepare(KernelSupport::detect())?;
        // SAFETY: the closure only makes system calls, which is allowed between fork and exec.
        unsafe { command.pre_exec(move || barriers.raise()) };
        Ok(())
    }

    /// Prepares the rules for the kernel, for the paths as they are now.
    pub(crate) fn prepare(&self, kernel: KernelSupport) -> io::Result<Barriers> {
        Ok(Barriers {
            ruleset: ruleset::ruleset(self, kernel)?,
            filters: match kernel.has_filters {
                true => filters::filters(self.level, server())?,
                false => Vec::new(),
            },
        })
    }
}

fn server() -> filters::Server {
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    filters::Server { process: std::process::id(), group: group.cast_unsigned() }
}

#[cfg(test)]
mod tests;

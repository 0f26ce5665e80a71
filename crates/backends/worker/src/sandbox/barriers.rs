//! Confines a process between fork and exec.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs};
use seccompiler::BpfProgram;

/// The rules that confine a process, ready for the kernel.
pub(crate) struct Barriers {
    /// Rules of Landlock. `None`: the kernel has no Landlock.
    pub ruleset: Option<OwnedFd>,
    /// Filters of seccomp.
    pub filters: Vec<BpfProgram>,
}

impl Barriers {
    /// Confines this process and all it starts, for ever. Makes system calls only: it runs between fork and exec, where
    /// nothing may be allocated.
    pub fn raise(&self) -> io::Result<()> {
        set_no_new_privs(true)?;
        if let Some(ruleset) = &self.ruleset {
            // SAFETY: takes numbers only.
            let done =
                unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        drop_capabilities()?;
        self.filters.iter().try_for_each(apply)
    }
}

fn apply(filter: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(filter).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
        _ => io::Error::from_raw_os_error(libc::EINVAL),
    })
}

/// Capabilities that models of a server running as root may need: for files of other users, and for memory of their own.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Drops all other capabilities. They cannot come back with exec, as no new privileges are given.
fn drop_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective &= KEPT;
    sets.permitted &= KEPT;
    sets.inheritable &= KEPT;
    Ok(set_capabilities(None, sets)?)
}

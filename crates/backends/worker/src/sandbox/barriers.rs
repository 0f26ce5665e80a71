//! Confining a process between fork and exec.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs};
use seccompiler::BpfProgram;

/// What is put around a process, ready for the kernel.
pub(crate) struct Barriers {
    /// Of Landlock; `None`: the kernel has none.
    pub ruleset: Option<OwnedFd>,
    /// Of seccomp.
    pub filters: Vec<BpfProgram>,
}

impl Barriers {
    /// Confines this process, for ever and with all it starts. Only system calls: it runs between fork and exec, where
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

/// What models of a server that runs as root may need: files of other users, and memory of their own.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// The others cannot come back with exec, as no new privileges are given.
fn drop_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective &= KEPT;
    sets.permitted &= KEPT;
    sets.inheritable &= KEPT;
    Ok(set_capabilities(None, sets)?)
}

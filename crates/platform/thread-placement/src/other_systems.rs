//! Stand-ins for systems other than Linux, which place threads as they like.

use std::{collections::BTreeSet, io};

use rustix::io::Errno;

/// Most CPUs that a policy may name.
pub(crate) const MOST_CPUS: usize = 1024;
/// The highest number of nodes that a policy may name.
pub(crate) const MAX_NODES: u32 = 1024;

/// Returns no CPUs: the system does not report them.
pub(crate) fn usable() -> BTreeSet<usize> {
    BTreeSet::new()
}

/// Fails: the system has no such call.
pub(crate) fn run_on(_cpus: &BTreeSet<usize>) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Fails: the system has no such call.
pub(crate) fn bind_to(_node: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

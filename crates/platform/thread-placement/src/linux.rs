//! The calls by which Linux places a thread and its memory.

use std::{collections::BTreeSet, io};

use rustix::{
    io::Errno,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// CPUs that fit into a set.
pub(crate) const MOST_CPUS: usize = CpuSet::MAX_CPU;
/// Nodes that fit into the mask.
pub(crate) const MAX_NODES: u32 = 1024;

const BITS: u32 = libc::c_ulong::BITS;

/// Returns the CPUs that this process may run on, or none if the system does not report them.
pub(crate) fn usable() -> BTreeSet<usize> {
    let set = sched_getaffinity(None).ok();
    set.map_or_else(BTreeSet::new, |set| (0..MOST_CPUS).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Makes the calling thread run only on these CPUs from now on.
pub(crate) fn run_on(cpus: &BTreeSet<usize>) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set)
}

/// Puts memory that the calling thread, and those it starts, allocate from now on, on this node.
pub(crate) fn bind_to(node: u32) -> io::Result<()> {
    let mut mask: [libc::c_ulong; (MAX_NODES / BITS) as usize] = Default::default();
    let word = mask.get_mut((node / BITS) as usize);
    *word.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))? = 1 << (node % BITS);
    // The kernel reads one bit less than the given number.
    let bits = libc::c_ulong::from(MAX_NODES) + 1;
    // SAFETY: the kernel reads as many bits of the mask as it has, which outlives the call; nothing is written.
    let outcome =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), bits) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_only_to_an_existing_numa_node() {
        let bind = |node| std::thread::spawn(move || bind_to(node)).join().expect("ended");
        match bind(0) {
            Ok(()) => {
                let error = bind(MAX_NODES - 1).expect_err("no such node");
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
            }
            // Some containers do not allow it, and a kernel may know no nodes.
            Err(error) => assert!(matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))),
        }
        assert_eq!(bind(MAX_NODES).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
    }
}

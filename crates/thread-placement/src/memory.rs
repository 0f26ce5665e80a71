//! Binding the memory of a thread to a NUMA node.

use std::io;

/// Nodes that fit into the mask.
pub(crate) const MAX_NODES: u32 = 1024;

const BITS: u32 = libc::c_ulong::BITS;

/// What the calling thread, and those it starts, allocate from now on lies on this node.
pub(crate) fn bind_to(node: u32) -> io::Result<()> {
    let mut mask: [libc::c_ulong; (MAX_NODES / BITS) as usize] = Default::default();
    let word = mask.get_mut((node / BITS) as usize);
    *word.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))? = 1 << (node % BITS);
    // The kernel takes one bit less than it is told.
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
    fn a_thread_is_bound_to_a_node_that_is_there_only() {
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

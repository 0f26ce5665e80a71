//! Memory whose descriptor a client has passed.

use std::{fs::File, os::fd::BorrowedFd};

use rustix::fs::{OFlags, fcntl_get_seals, fcntl_getfl};

/// Opens the memory of a descriptor anew. The error is the reason for the client.
///
/// The client shares the status flags of its own descriptor, and could make every write append. Only memory is taken: a file of
/// another file system can block a reader, or even the one who asks for its length, as long as that system likes.
pub(super) fn open(descriptor: BorrowedFd<'_>) -> Result<File, String> {
    let flags = fcntl_getfl(descriptor).map_err(|error| error.to_string())?;
    if flags.contains(OFlags::PATH) {
        return Err("the passed descriptor was opened with O_PATH".to_owned());
    }
    if flags & OFlags::RWMODE != OFlags::RDWR {
        return Err("the passed descriptor is not open for reading and writing".to_owned());
    }
    // No file system is asked for this. Only files of memory have it.
    if fcntl_get_seals(descriptor).is_err() {
        return Err(
            "the passed descriptor is no memory: make it with memfd_create, or open a file of /dev/shm"
                .to_owned(),
        );
    }
    galatea_regular_files::open_again(descriptor)
        .map_err(|error| format!("the passed memory cannot be opened: {error}"))
}

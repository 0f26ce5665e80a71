//! Descriptors that a process passes to another through a Unix socket (`SCM_RIGHTS`), and the user of the other process.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::retry_on_intr,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

/// The most descriptors of one message.
pub const MOST_DESCRIPTORS: usize = 32;

/// Sends one byte with all the descriptors.
///
/// # Errors
/// Those of the system; of kind `InvalidInput` if there are too many.
pub fn pass_descriptors(to: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let has_room = descriptors.len() <= MOST_DESCRIPTORS
        && (descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors)));
    if !has_room {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    retry_on_intr(|| sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one byte with its descriptors, which children do not inherit.
///
/// # Errors
/// Those of the system; of kind `UnexpectedEof` if the other process is gone, `InvalidData` if not all descriptors came.
pub fn receive_descriptors(from: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut pieces = [IoSliceMut::new(&mut byte)];
    let received =
        retry_on_intr(|| recvmsg(from, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC))?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(found) = message {
            descriptors.extend(found);
        }
    }
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "some descriptors did not arrive"));
    }
    Ok(descriptors)
}

/// Returns the user of the process that made the other end of a Unix socket.
///
/// # Errors
/// Those of the system.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn user_of_peer(socket: impl AsFd) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(socket)?.uid.as_raw())
}

/// Returns the user of the process that made the other end of a Unix socket.
///
/// # Errors
/// Those of the system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn user_of_peer(socket: impl AsFd) -> io::Result<u32> {
    use std::os::fd::AsRawFd as _;

    let (mut user, mut group) = (0, 0);
    // SAFETY: the descriptor is open during the call, and both places can be written.
    let failed = unsafe { libc::getpeereid(socket.as_fd().as_raw_fd(), &mut user, &mut group) };
    if failed != 0 { Err(io::Error::last_os_error()) } else { Ok(user) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _, pipe};

    use rustix::{
        io::{FdFlags, fcntl_getfd},
        process::getuid,
    };

    use super::*;

    #[test]
    fn descriptors_arrive_in_order_and_closed_for_children() {
        let (here, there) = UnixStream::pair().expect("sockets");
        let pipes: Vec<_> = (0..MOST_DESCRIPTORS).map(|_| pipe().expect("a pipe")).collect();
        let writers: Vec<_> = pipes.iter().map(|(_, writer)| writer.as_fd()).collect();
        pass_descriptors(&here, &writers).expect("passed");
        let found = receive_descriptors(&there).expect("received");
        assert_eq!(found.len(), MOST_DESCRIPTORS);
        for (number, (descriptor, (mut reader, _))) in (0..).zip(found.into_iter().zip(pipes)) {
            assert!(fcntl_getfd(&descriptor).expect("open").contains(FdFlags::CLOEXEC));
            std::fs::File::from(descriptor).write_all(&[number]).expect("written");
            let mut byte = [0];
            reader.read_exact(&mut byte).expect("read");
            assert_eq!(byte, [number]);
        }
    }

    #[test]
    fn too_many_none_and_the_end_are_told_apart() {
        let (here, there) = UnixStream::pair().expect("sockets");
        let error = pass_descriptors(&here, &[here.as_fd(); MOST_DESCRIPTORS + 1]);
        assert_eq!(error.expect_err("too many").kind(), io::ErrorKind::InvalidInput);
        pass_descriptors(&here, &[]).expect("passed");
        assert!(receive_descriptors(&there).expect("received").is_empty());
        drop(here);
        let error = receive_descriptors(&there).expect_err("the end");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn the_user_of_the_other_end_is_known() {
        let (here, _there) = UnixStream::pair().expect("sockets");
        assert_eq!(user_of_peer(&here).expect("known"), getuid().as_raw());
    }
}

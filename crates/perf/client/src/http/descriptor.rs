//! Descriptors that travel with a request over a Unix socket.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::fd::BorrowedFd,
};

use galatea_types::Error;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::{io::Interest, net::UnixStream};
use tokio_util::either::Either;

use crate::transport::Transport;

/// The error of a server that is not reached over a Unix socket.
pub(super) fn no_descriptors(url: &str) -> Error {
    Error::invalid_arg(format!(
        "memory can be passed to a server only over a Unix socket and HTTP, and {url} is none; expected unix:PATH"
    ))
}

/// Sends the first bytes of `bytes` and the descriptor with them; returns the number of bytes. The receiver gets a descriptor
/// of its own to the same file.
pub(super) async fn send_with_descriptor(
    io: &Transport,
    bytes: &[u8],
    descriptor: BorrowedFd<'_>,
) -> io::Result<usize> {
    let Either::Left(Either::Right(stream)) = io else {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    };
    loop {
        stream.writable().await?;
        let attempt = || attempt(stream, bytes, descriptor);
        match stream.try_io(Interest::WRITABLE, attempt) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Nothing was sent, and the descriptor neither.
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            result => return result,
        }
    }
}

fn attempt(stream: &UnixStream, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("there is no room for a descriptor"));
    }
    // Without this flag a closed connection would end the process with a signal.
    let flags = SendFlags::NOSIGNAL;
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut control, flags)?)
}

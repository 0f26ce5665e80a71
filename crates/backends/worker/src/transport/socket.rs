//! A socket that keeps packets whole.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType,
    },
};

/// One end of a socket that keeps packets whole and in order.
pub(crate) struct Socket(OwnedFd);

/// Result of a receive that does not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketRead {
    Packet(usize),
    Nothing,
    /// The other side has closed its end.
    End,
}

/// Room for two of the largest packets, so that one can be written while another waits.
const SEND_BUFFER: usize = 512 << 10;

impl Socket {
    /// Makes a pair of sockets: this side's end, and the worker's.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        for end in [&ours, &theirs] {
            // The kernel may cap the size; a packet fits the default, too.
            rustix::net::sockopt::set_socket_send_buffer_size(end, SEND_BUFFER)?;
        }
        Ok((Self(ours), theirs))
    }

    /// Sends the parts as one packet. Returns false if there is no room now.
    pub fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        self.send_with(parts, SendFlags::DONTWAIT)
    }

    /// Sends the parts as one packet; waits for room.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.send_with(parts, SendFlags::empty()).map(drop)
    }

    fn send_with(&self, parts: &[IoSlice<'_>], flags: SendFlags) -> io::Result<bool> {
        let flags = flags | SendFlags::NOSIGNAL;
        let mut no_control = SendAncillaryBuffer::default();
        loop {
            match rustix::net::sendmsg(&self.0, parts, &mut no_control, flags) {
                Ok(_) => return Ok(true),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives a packet that is there already.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<SocketRead> {
        self.receive_with(buffer, RecvFlags::DONTWAIT)
    }

    /// Reads the beginning of a waiting packet, which stays in the socket.
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<SocketRead> {
        self.receive_with(buffer, RecvFlags::DONTWAIT | RecvFlags::PEEK)
    }

    /// Waits for a packet, or until the socket is closed or shut down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<SocketRead> {
        self.receive_with(buffer, RecvFlags::empty())
    }

    /// Ends [`Socket::receive`] in other threads, once received packets have been taken.
    pub fn shut_down(&self) {
        // Fails on a socket that is no longer connected. Nobody waits on such a socket.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }

    fn receive_with(&self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<SocketRead> {
        loop {
            match rustix::net::recv(&self.0, &mut *buffer, flags) {
                Ok((0, _)) => return Ok(SocketRead::End),
                Ok((length, _)) => return Ok(SocketRead::Packet(length)),
                Err(Errno::AGAIN) => return Ok(SocketRead::Nothing),
                Err(Errno::CONNRESET) => return Ok(SocketRead::End),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl From<OwnedFd> for Socket {
    fn from(end: OwnedFd) -> Self {
        Self(end)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

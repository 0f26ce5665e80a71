//! The socket on which a front end listens.

use std::{io, net, os, os::fd::OwnedFd};

use tokio::net::{TcpListener, UnixListener};

use crate::{client::Peer, socket::DetachedSocket};

/// A TCP port or a Unix socket that clients can connect to. The code that binds it also removes the file of a Unix
/// socket.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(net::TcpListener),
    /// A stream Unix socket.
    Unix(os::unix::net::UnixListener),
}

impl From<net::TcpListener> for Listener {
    fn from(listener: net::TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<os::unix::net::UnixListener> for Listener {
    fn from(listener: os::unix::net::UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl Listener {
    /// Returns the address of a TCP port; `None` for a Unix socket.
    pub fn local_addr(&self) -> io::Result<Option<net::SocketAddr>> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Some),
            Self::Unix(_) => Ok(None),
        }
    }

    /// Returns a further descriptor of the same socket, which another process may get.
    pub fn try_clone_descriptor(&self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Tcp(listener) => listener.try_clone()?.into(),
            Self::Unix(listener) => listener.try_clone()?.into(),
        })
    }

    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.set_nonblocking(true),
            Self::Unix(listener) => listener.set_nonblocking(true),
        }
    }

    /// Registers the listener, which must be non-blocking, with the current runtime.
    pub(crate) fn attach(self) -> io::Result<AttachedListener> {
        Ok(match self {
            Self::Tcp(listener) => AttachedListener::Tcp(TcpListener::from_std(listener)?),
            Self::Unix(listener) => AttachedListener::Unix(UnixListener::from_std(listener)?),
        })
    }
}

#[derive(Debug)]
pub(crate) enum AttachedListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl AttachedListener {
    pub async fn accept(&self) -> io::Result<(DetachedSocket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((DetachedSocket::Tcp(stream.into_std()?), Peer::Tcp(address)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((DetachedSocket::Unix(stream.into_std()?), Peer::Unix))
            }
        }
    }
}

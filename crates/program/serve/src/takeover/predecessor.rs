//! The side of the new server.

use std::{
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use socket2::{Domain, SockAddr, Socket, Type};

use super::{
    channel::{Channel, ChannelError, Message, VERSION, unexpected},
    sockets::{PassedSockets, SocketName},
};

/// The server that has the sockets.
pub struct Predecessor {
    path: PathBuf,
    channel: Channel,
    offered: Vec<SocketName>,
}

/// The answer of the other server to the news that this one accepts.
pub(super) enum Confirmation {
    /// It accepts no more connections.
    Leaving,
    /// It has ended or hangs.
    Silent,
}

type Result<T> = std::result::Result<T, ChannelError>;

impl Predecessor {
    /// Asks the server at `path` for its sockets. Returns `None` if none listens there.
    pub(super) fn find(path: &Path) -> Result<Option<Self>> {
        let stream = match connect(path) {
            Ok(stream) => stream,
            // Whoever listens next replaces a file that is left over, and refuses one that is no socket.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let channel = Channel::new(stream)?;
        channel.send(&Message::Hello { version: VERSION })?;
        match channel.receive_unrefused()? {
            Message::Offer { sockets } => {
                Ok(Some(Self { path: path.to_owned(), channel, offered: sockets }))
            }
            other => Err(unexpected(&other)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path for a message.
    pub(super) fn place(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Returns true if the other server will pass this socket.
    pub fn offers(&self, name: &SocketName) -> bool {
        self.offered.contains(name)
    }

    /// Takes the sockets. There are none if the other server has ended.
    pub(super) fn take(&self) -> Result<PassedSockets> {
        match self.try_take() {
            Err(ChannelError::Gone) => {
                log::warn!(
                    "The other server has ended before it passed its sockets: this one opens its own"
                );
                Ok(PassedSockets::default())
            }
            other => other,
        }
    }

    fn try_take(&self) -> Result<PassedSockets> {
        self.channel.send(&Message::Take)?;
        match self.channel.receive_unrefused()? {
            Message::Sockets { sockets } => {
                let descriptors = self.channel.receive_descriptors()?;
                PassedSockets::join(sockets, descriptors).ok_or_else(|| {
                    ChannelError::Malformed(
                        "it names more or fewer sockets than it passed".to_owned(),
                    )
                })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Tells that this server accepts. An error means that the other one serves on.
    pub(super) fn confirm(self, taken: Vec<SocketName>) -> Result<Confirmation> {
        let sent = self.channel.send(&Message::Serving { taken });
        match sent.and_then(|()| self.channel.receive_unrefused()) {
            Err(refused @ ChannelError::Refused(_)) => Err(refused),
            Ok(Message::Leaving) => Ok(Confirmation::Leaving),
            // The sockets are here, and clients are connected: somebody must serve them.
            Ok(_) | Err(_) => Ok(Confirmation::Silent),
        }
    }
}

/// Connects without waiting for room in a full queue.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

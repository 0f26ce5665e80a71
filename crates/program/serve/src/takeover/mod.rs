//! Upgrades without a lost request: a new server takes the listening sockets of the old one.
//!
//! Both have the same path, at which the old one listens. The new one connects there, loads its models, gets the sockets,
//! accepts, and says so. Until it has said so the old one serves on; from then on the old one only answers the clients that
//! are connected.

mod channel;
mod predecessor;
mod sockets;
mod successor;

use std::{os::unix::net::UnixListener, path::Path};

use anyhow::{Context, Result, anyhow};

use self::{predecessor::Confirmation, successor::Offer};
pub use self::{
    predecessor::Predecessor,
    sockets::{OfferedSocket, PassedSocket, PassedSockets, SocketName, TakenSockets},
};
use crate::{socket_file::SocketFile, stop::StopHandle};

/// The role of the socket at which new servers connect.
const ROLE: &str = "takeover";

/// Length of the queue of new servers.
const BACKLOG: i32 = 8;

/// The rights of its file: only the server's own user may connect.
const MODE: u32 = 0o600;

/// The part of a server in upgrades.
#[derive(Default)]
pub enum Takeover {
    /// `--takeover` was not given, or the sockets are another server's now.
    #[default]
    Off,
    /// There was no other server.
    First(ControlSocket),
    /// Another server has the sockets.
    Second(Predecessor),
    /// A new server may take the sockets.
    Offered(Offer),
}

/// The socket at which new servers connect.
pub struct ControlSocket {
    listener: UnixListener,
    file: SocketFile,
}

impl Takeover {
    /// Looks for another server at `path`, and listens there if there is none.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Off) };
        if let Some(found) = Predecessor::find(path).map_err(|error| refused(path, &error))? {
            log::info!(
                "Taking over from the server at '{}' once all models are loaded",
                found.place()
            );
            return Ok(Self::Second(found));
        }
        ControlSocket::listen(path).map(Self::First)
    }

    /// Returns the other server, until its sockets are taken.
    pub fn predecessor(&self) -> Option<&Predecessor> {
        match self {
            Self::Second(found) => Some(found),
            _ => None,
        }
    }

    /// Gets the sockets of the other server. There are none if it has ended meanwhile.
    pub fn take(&mut self) -> Result<PassedSockets> {
        match self {
            Self::Second(found) => {
                let path = found.path().to_owned();
                found.take().map_err(|error| refused(&path, &error))
            }
            _ => Ok(PassedSockets::default()),
        }
    }

    /// Tells the other server that this one accepts on the sockets `taken`, and offers its own to the next server. `passed` has the
    /// socket at which that one will connect.
    pub fn offer(
        &mut self,
        mut passed: PassedSockets,
        taken: Vec<SocketName>,
        sockets: Vec<OfferedSocket>,
        stop: StopHandle,
    ) -> Result<()> {
        let control = match std::mem::take(self) {
            Self::Off => return Ok(()),
            Self::First(control) => control,
            Self::Second(found) => {
                let path = found.path().to_owned();
                let control = ControlSocket::adopt(&path, &mut passed)?;
                for left in passed.names() {
                    log::warn!(
                        "The socket {left} of the other server is not used any more: no option of this one names it"
                    );
                }
                match found.confirm(taken).map_err(|error| refused(&path, &error))? {
                    Confirmation::Leaving => {
                        log::info!("The other server accepts no more connections")
                    }
                    Confirmation::Silent => log::warn!("The other server has ended without a word"),
                }
                control
            }
            Self::Offered(offer) => {
                *self = Self::Offered(offer);
                return Ok(());
            }
        };
        *self = Self::Offered(Offer::start(control, sockets, stop)?);
        Ok(())
    }

    /// Ends the offer. Returns the sockets that a new server has, if there is one.
    pub fn end(self) -> Option<TakenSockets> {
        match self {
            Self::Offered(offer) => offer.end(),
            _ => None,
        }
    }
}

impl ControlSocket {
    fn listen(path: &Path) -> Result<Self> {
        let listening = SocketFile::listen(path, BACKLOG, Some(MODE));
        let (listener, file) = listening
            .map_err(|error| anyhow!("{error}, or take another path with --takeover=PATH"))?;
        Ok(Self { listener, file })
    }

    /// Returns the one that the other server has passed, or a new one if it has ended.
    fn adopt(path: &Path, passed: &mut PassedSockets) -> Result<Self> {
        match passed.take(&SocketName::of_control(path)) {
            None => Self::listen(path),
            Some(PassedSocket { socket, lock }) => {
                let listener = UnixListener::from(socket);
                listener.set_nonblocking(false).context("the socket of --takeover is unusable")?;
                let mut file = SocketFile::adopt(path, lock);
                file.set_own(true);
                Ok(Self { listener, file })
            }
        }
    }
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("--takeover={}: {error}", path.display())
}

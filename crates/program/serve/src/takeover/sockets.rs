//! The sockets that one server passes to another.

use std::{
    fmt,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{self, Path},
};

use serde::{Deserialize, Serialize};

use crate::options::{Endpoint, Place};

/// The name of a socket, the same in both servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketName {
    role: String,
    /// The address and port as given, or the full path of a Unix socket.
    place: String,
}

impl SocketName {
    /// Returns the name of a service's socket.
    pub fn of(endpoint: &Endpoint) -> Self {
        let place = match &endpoint.place {
            Place::Socket(path) => unix(path),
            port @ Place::Port(_) => port.to_string(),
        };
        Self { role: endpoint.service.to_owned(), place }
    }

    /// Returns the name of the socket at which new servers connect.
    pub(super) fn of_control(path: &Path) -> Self {
        Self { role: super::ROLE.to_owned(), place: unix(path) }
    }
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of {} at {}", self.role.escape_debug(), self.place.escape_debug())
    }
}

fn unix(path: &Path) -> String {
    let whole = path::absolute(path);
    format!("unix:{}", whole.as_deref().unwrap_or(path).display())
}

/// A socket that a new server may take.
#[derive(Debug)]
pub struct OfferedSocket {
    pub name: SocketName,
    pub socket: OwnedFd,
    /// The lock of the file of a Unix socket.
    pub lock: Option<OwnedFd>,
}

/// The place of a socket among the descriptors of a message: its own one, and behind it that of its lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SocketEntry {
    name: SocketName,
    has_lock: bool,
}

impl OfferedSocket {
    pub(super) fn entry(&self) -> SocketEntry {
        SocketEntry { name: self.name.clone(), has_lock: self.lock.is_some() }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.socket), self.lock.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }
}

/// The sockets that a new server has.
#[derive(Clone, Debug)]
pub enum TakenSockets {
    /// These.
    Named(Vec<SocketName>),
    /// All or none: this server was asked to stop after it had passed them, and before the new one said which it serves.
    Unknown,
}

impl TakenSockets {
    /// Returns true if the new server has, or may have, the socket with this name.
    pub fn may_contain(&self, name: &SocketName) -> bool {
        match self {
            Self::Named(names) => names.contains(name),
            Self::Unknown => true,
        }
    }
}

/// A socket of the other server.
#[derive(Debug)]
pub struct PassedSocket {
    pub socket: OwnedFd,
    pub lock: Option<OwnedFd>,
}

/// The sockets of the other server.
#[derive(Debug, Default)]
pub struct PassedSockets(Vec<(SocketName, PassedSocket)>);

impl PassedSockets {
    /// Joins names and descriptors; `None` if their numbers differ.
    pub(super) fn join(entries: Vec<SocketEntry>, descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut sockets = Vec::new();
        for SocketEntry { name, has_lock } in entries {
            let socket = descriptors.next()?;
            let lock = if has_lock { Some(descriptors.next()?) } else { None };
            sockets.push((name, PassedSocket { socket, lock }));
        }
        descriptors.next().is_none().then_some(Self(sockets))
    }

    /// Returns the names of the sockets that nobody has taken out.
    pub(super) fn names(&self) -> impl Iterator<Item = &SocketName> {
        self.0.iter().map(|(name, _)| name)
    }

    /// Takes the socket with this name out.
    pub fn take(&mut self, name: &SocketName) -> Option<PassedSocket> {
        let index = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.swap_remove(index).1)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::pipe, path::PathBuf};

    use super::*;
    use crate::options::PortPlace;

    fn name(service: &'static str, place: Place) -> SocketName {
        SocketName::of(&Endpoint { service, place })
    }

    fn port(address: &str, port: u16) -> Place {
        Place::Port(PortPlace { address: address.to_owned(), port, is_shared: false })
    }

    fn entry(service: &'static str, has_lock: bool) -> SocketEntry {
        SocketEntry { name: name(service, port("127.0.0.1", 0)), has_lock }
    }

    fn descriptors(count: usize) -> Vec<OwnedFd> {
        (0..count).map(|_| pipe().expect("a pipe").0.into()).collect()
    }

    #[test]
    fn a_name_is_that_of_one_role_at_one_place() {
        let http = name("HTTP", port("127.0.0.1", 8000));
        assert_eq!(http, name("HTTP", port("127.0.0.1", 8000)));
        assert_ne!(http, name("GRPC", port("127.0.0.1", 8000)));
        assert_ne!(http, name("HTTP", port("127.0.0.1", 8001)));
        assert_ne!(http, name("HTTP", port("0.0.0.0", 8000)));
        let here = std::env::current_dir().expect("a folder");
        let socket = |path: PathBuf| name("HTTP", Place::Socket(path));
        assert_eq!(socket("a.sock".into()), socket(here.join("a.sock")));
    }

    #[test]
    fn names_and_descriptors_must_agree() {
        let entries = || vec![entry("HTTP", true), entry("GRPC", false)];
        for count in [0, 1, 2, 4] {
            assert!(PassedSockets::join(entries(), descriptors(count)).is_none(), "{count}");
        }
        let mut joined = PassedSockets::join(entries(), descriptors(3)).expect("as many");
        let grpc = joined.take(&entry("GRPC", false).name).expect("passed");
        assert!(grpc.lock.is_none() && joined.take(&entry("GRPC", false).name).is_none());
        assert!(joined.take(&entry("HTTP", true).name).expect("passed").lock.is_some());
    }
}

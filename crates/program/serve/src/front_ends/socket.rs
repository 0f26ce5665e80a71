//! The sockets of the services, bound before models are loaded.

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    os::unix::net::UnixListener,
};

use anyhow::{Result, anyhow};
use galatea_frontend::Listener;
use galatea_system::who_listens;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{
    options::{Endpoint, Place, PortPlace},
    socket_file::SocketFile,
    takeover::PassedSocket,
};

/// Length of the queue of connections to accept; the system limits it further.
const BACKLOG: i32 = 1024;

/// A socket of a service that was not started yet.
#[derive(Debug)]
pub enum BoundSocket {
    /// A port that does not listen yet: clients are refused until the service starts.
    Port { socket: Socket, place: PortPlace },
    /// A port that another server has passed, which listens.
    Listening(TcpListener),
    /// A Unix socket, whose clients wait until the service starts. If it did not listen, other servers would think that its
    /// file is left over.
    Unix(UnixListener),
}

/// Binds the socket of a service. That of a Unix socket comes with its file.
pub fn bind(endpoint: &Endpoint) -> Result<(BoundSocket, Option<SocketFile>)> {
    match &endpoint.place {
        Place::Port(place) => {
            let socket = bind_port(place).map_err(|error| not_bound(endpoint, place, &error))?;
            Ok((BoundSocket::Port { socket, place: place.clone() }, None))
        }
        Place::Socket(path) => {
            let listening = SocketFile::listen(path, BACKLOG, None);
            let (listener, file) = listening.map_err(|error| {
                let option = Endpoint::address_option(endpoint.service);
                let advice = format!("or take another path with {option}=unix:PATH");
                not_started(endpoint, &format!("{error}, {advice}"))
            })?;
            Ok((BoundSocket::Unix(listener), Some(file)))
        }
    }
}

/// Makes a bound socket listen.
pub fn listen(socket: BoundSocket, endpoint: &Endpoint) -> Result<Listener> {
    match socket {
        BoundSocket::Port { socket, place } => {
            socket.listen(BACKLOG).map_err(|error| not_bound(endpoint, &place, &error))?;
            Ok(TcpListener::from(socket).into())
        }
        BoundSocket::Listening(listener) => Ok(listener.into()),
        BoundSocket::Unix(listener) => Ok(listener.into()),
    }
}

/// Returns the socket that another server has passed for this service.
pub fn adopt(
    endpoint: &Endpoint,
    passed: PassedSocket,
) -> Result<(BoundSocket, Option<SocketFile>)> {
    let unusable = |error: io::Error| {
        not_started(endpoint, &format!("the socket of the other server is unusable: {error}"))
    };
    if !SockRef::from(&passed.socket).is_listener().map_err(unusable)? {
        return Err(not_started(endpoint, "the socket of the other server does not listen"));
    }
    match &endpoint.place {
        Place::Port(_) => {
            let listener = TcpListener::from(passed.socket);
            listener.local_addr().map_err(unusable)?;
            Ok((BoundSocket::Listening(listener), None))
        }
        Place::Socket(path) => {
            let listener = UnixListener::from(passed.socket);
            listener.local_addr().map_err(unusable)?;
            Ok((BoundSocket::Unix(listener), Some(SocketFile::adopt(path, passed.lock))))
        }
    }
}

fn bind_port(place: &PortPlace) -> io::Result<Socket> {
    let address = resolve(place)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // As in std: a server that was just stopped can be started again at once.
    socket.set_reuse_address(true)?;
    if place.is_shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

fn resolve(place: &PortPlace) -> io::Result<SocketAddr> {
    let host = place.address.trim_start_matches('[').trim_end_matches(']');
    let mut found = (host, place.port).to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such address"))
}

fn not_bound(endpoint: &Endpoint, place: &PortPlace, error: &io::Error) -> anyhow::Error {
    let PortPlace { address, port, .. } = place;
    let option = Endpoint::port_option(endpoint.service);
    let reason = match error.kind() {
        io::ErrorKind::AddrInUse => {
            let holder = match who_listens(*port) {
                Some(process) => format!("by {process}: stop it"),
                None => "by another process: stop it".to_owned(),
            };
            format!(
                "Socket '{address}:{port}' already in use {holder}, or take another port with {option}=PORT"
            )
        }
        io::ErrorKind::PermissionDenied => format!(
            "cannot listen at '{address}:{port}': {error}; ports below 1024 are for privileged processes, take another \
             with {option}=PORT"
        ),
        _ => format!(
            "cannot listen at '{address}:{port}': {error}; the address must be one of this machine's"
        ),
    };
    not_started(endpoint, &reason)
}

fn not_started(endpoint: &Endpoint, reason: &str) -> anyhow::Error {
    let service = match endpoint.service {
        "metrics" => "Metrics",
        other => other,
    };
    anyhow!("failed to start {service} service: Unavailable - {reason}")
}

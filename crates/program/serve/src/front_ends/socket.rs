//! The sockets of the services, bound before models are loaded.

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
};

use anyhow::{Result, anyhow};
use galatea_system::who_listens;
use socket2::{Domain, Protocol, Socket, Type};

use crate::options::Endpoint;

/// Length of the queue of connections to accept; the system limits it further.
const BACKLOG: i32 = 1024;

/// Binds a socket that does not listen yet: clients are refused until its service starts.
pub fn bind(endpoint: &Endpoint) -> Result<Socket> {
    try_bind(endpoint).map_err(|error| not_started(endpoint, &error))
}

/// Makes a bound socket listen.
pub fn listen(socket: Socket, endpoint: &Endpoint) -> Result<TcpListener> {
    socket.listen(BACKLOG).map_err(|error| not_started(endpoint, &error))?;
    Ok(socket.into())
}

fn try_bind(endpoint: &Endpoint) -> io::Result<Socket> {
    let address = resolve(endpoint)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // As in std: a server that was just stopped can be started again at once.
    socket.set_reuse_address(true)?;
    if endpoint.reuses_port {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

fn resolve(endpoint: &Endpoint) -> io::Result<SocketAddr> {
    let host = endpoint.address.trim_start_matches('[').trim_end_matches(']');
    let mut found = (host, endpoint.port).to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such address"))
}

fn not_started(endpoint: &Endpoint, error: &io::Error) -> anyhow::Error {
    let Endpoint { address, port, .. } = endpoint;
    let service = match endpoint.service {
        "metrics" => "Metrics",
        other => other,
    };
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
    anyhow!("failed to start {service} service: Unavailable - {reason}")
}

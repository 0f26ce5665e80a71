//! The sockets of the services, bound before models are loaded.

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
};

use anyhow::{Result, anyhow};
use socket2::{Domain, Protocol, Socket, Type};

use super::port_holder::who_listens;
use crate::options::{Endpoint, ServeOptions};

/// Sockets bound but not listening yet: clients are refused until the services start.
pub struct Sockets {
    pub http: Option<BoundSocket>,
    pub grpc: Option<BoundSocket>,
    pub metrics: Option<BoundSocket>,
    /// In the order of the options.
    pub clouds: Vec<BoundSocket>,
}

pub struct BoundSocket {
    socket: Socket,
    endpoint: Endpoint,
}

/// Length of the queue of connections to accept; the system cuts it to its own limit.
const BACKLOG: i32 = 1024;

impl Sockets {
    pub fn bind(options: &ServeOptions) -> Result<Self> {
        let bind =
            |endpoint: &Option<Endpoint>| endpoint.as_ref().map(BoundSocket::bind).transpose();
        Ok(Self {
            http: bind(&options.http)?,
            grpc: bind(&options.grpc)?,
            metrics: bind(&options.metrics)?,
            clouds: options
                .clouds
                .iter()
                .map(|cloud| BoundSocket::bind(&cloud.endpoint))
                .collect::<Result<_>>()?,
        })
    }
}

impl BoundSocket {
    fn bind(endpoint: &Endpoint) -> Result<Self> {
        let socket = bind(endpoint).map_err(|error| not_started(endpoint, &error))?;
        Ok(Self { socket, endpoint: endpoint.clone() })
    }

    pub fn listen(self) -> Result<TcpListener> {
        self.socket.listen(BACKLOG).map_err(|error| not_started(&self.endpoint, &error))?;
        Ok(self.socket.into())
    }
}

fn bind(endpoint: &Endpoint) -> io::Result<Socket> {
    let address = resolve(endpoint)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // As std does: a server that was just stopped can be started again at once.
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
    let option = endpoint.port_option();
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

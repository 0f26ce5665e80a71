//! Ports for a first look: a port in use is replaced by the next free one, unless the user named it.

use std::{
    io,
    net::{Ipv6Addr, TcpListener},
};

use galatea_system::who_listens;

use crate::{
    flags::{EndpointFlags, ServeFlags},
    options::{is_unix, metrics_address},
};

/// Marks a port that nobody named; the user cannot give this number.
pub const NOT_NAMED: i64 = -1;

/// Number of ports tried after the usual one.
const TRIES: i64 = 200;

/// Gives a port to each service that is on, and returns notes about unusual ones.
pub fn choose(flags: &mut ServeFlags) -> Vec<String> {
    let metrics_address = metrics_address(flags).to_owned();
    let (http_address, grpc_address) = (flags.http.address.clone(), flags.grpc.address.clone());
    let mut services: [(&str, &mut EndpointFlags, String, i64); 3] = [
        ("HTTP", &mut flags.http, http_address, 8000),
        ("gRPC", &mut flags.grpc, grpc_address, 8001),
        ("metrics", &mut flags.metrics, metrics_address, 8002),
    ];
    let mut taken: Vec<i64> = services.iter().map(|(_, endpoint, ..)| endpoint.port).collect();
    let mut notes = Vec::new();
    for (service, endpoint, address, usual) in &mut services {
        if endpoint.port != NOT_NAMED || endpoint.is_allowed == Some(false) {
            endpoint.port = endpoint.port.max(0);
            continue;
        }
        if is_unix(address) {
            endpoint.port = *usual;
            continue;
        }
        let port = free_port(address, *usual, &taken);
        if port != *usual {
            let holder = u16::try_from(*usual).ok().and_then(who_listens);
            let holder = holder.map(|process| format!(" by {process}")).unwrap_or_default();
            let place = if port == 0 { "a free port".to_owned() } else { format!("port {port}") };
            notes.push(format!("Port {usual} is in use{holder}: {service} is served at {place}."));
        }
        taken.push(port);
        endpoint.port = port;
    }
    notes
}

/// Returns the usual port, or the next that is free and not the usual one of another service; 0 if there is none.
fn free_port(address: &str, usual: i64, taken: &[i64]) -> i64 {
    let mut candidates = (usual..usual + TRIES)
        .filter(|port| !taken.contains(port) && (*port == usual || !(8000..=8002).contains(port)));
    candidates.find(|port| is_free(address, *port)).unwrap_or(0)
}

/// Returns true if a client that uses `localhost` also finds the port free: `::1` is tried first if somebody listens there.
fn is_free(address: &str, port: i64) -> bool {
    let Ok(port) = u16::try_from(port) else { return false };
    let address = address.trim_start_matches('[').trim_end_matches(']');
    let is_in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    let here = TcpListener::bind((address, port));
    // The server reports other errors.
    if here.as_ref().is_err_and(is_in_use) {
        return false;
    }
    drop(here);
    !TcpListener::bind((Ipv6Addr::LOCALHOST, port)).as_ref().is_err_and(is_in_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(http: i64) -> ServeFlags {
        let mut flags = ServeFlags::default();
        for endpoint in [&mut flags.http, &mut flags.grpc, &mut flags.metrics] {
            endpoint.port = NOT_NAMED;
            endpoint.address = "127.0.0.1".to_owned();
        }
        flags.http.port = http;
        flags
    }

    #[test]
    fn a_given_port_is_kept_and_used_only_once() {
        let mut flags = flags(8001);
        let notes = choose(&mut flags);
        assert_eq!(flags.http.port, 8001);
        assert!(flags.grpc.port > 8002 || flags.grpc.port == 0, "{}", flags.grpc.port);
        assert!(notes.iter().any(|note| note.contains("gRPC is served at")), "{notes:?}");
    }

    #[test]
    fn a_port_in_use_is_skipped() {
        let holder = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = i64::from(holder.local_addr().expect("bound").port());
        assert!(!is_free("127.0.0.1", port));
        let other = free_port("127.0.0.1", port, &[]);
        assert!(other > port || other == 0, "{other}");
        assert_ne!(free_port("127.0.0.1", other, &[other]), other, "taken by another service");
    }
}

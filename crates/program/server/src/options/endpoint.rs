//! The endpoints of the services.

use std::path::{Path, PathBuf};

use galatea_command_line::{BadValue, ValueError};
use galatea_serve::{Endpoint, Note, Place, PortPlace};

use crate::flags::{EndpointFlags, FlagError, ServeFlags};

/// The address of metrics if HTTP has none.
const LOCAL: &str = "127.0.0.1";
/// The start of an address that is the path of a Unix socket.
const UNIX: &str = "unix:";
/// The start of a name that is no path, as gRPC writes it.
const ABSTRACT: &str = "unix-abstract:";
/// The most bytes of the path of a Unix socket: the system's 108, with the zero at the end.
const LONGEST_PATH: usize = 107;

/// Returns HTTP, gRPC and metrics, which must not have the address of one of the `others`; `None`: not served. Notes ports
/// without effect.
pub(super) fn endpoints(
    flags: &ServeFlags,
    others: &[&Endpoint],
    notes: &mut Vec<Note>,
) -> Result<[Option<Endpoint>; 3], FlagError> {
    let mut endpoint = |usual: UsualPort, given: &EndpointFlags, address: &str| {
        let is_allowed = given.is_allowed.unwrap_or(true);
        is_allowed.then(|| endpoint(usual, given, address, notes)).transpose()
    };
    let endpoints = [
        endpoint(UsualPort { service: "HTTP", port: 8000 }, &flags.http, &flags.http.address)?,
        endpoint(UsualPort { service: "GRPC", port: 8001 }, &flags.grpc, &flags.grpc.address)?,
        endpoint(
            UsualPort { service: "metrics", port: 8002 },
            &flags.metrics,
            metrics_address(flags),
        )?,
    ];
    let all: Vec<&Endpoint> = endpoints.iter().flatten().chain(others.iter().copied()).collect();
    if let Some((first, last)) = flags.sagemaker_safe_ports.filter(|_| flags.allows_sagemaker) {
        check_range(&all, first, last)?;
    }
    check_collisions(&all)?;
    Ok(endpoints)
}

/// A service with the port that it has by default.
struct UsualPort {
    service: &'static str,
    port: i64,
}

fn endpoint(
    usual: UsualPort,
    flags: &EndpointFlags,
    address: &str,
    notes: &mut Vec<Note>,
) -> Result<Endpoint, FlagError> {
    let service = usual.service;
    let place = match address.strip_prefix(UNIX) {
        Some(path) => {
            if flags.port != usual.port {
                let option = Endpoint::port_option(service);
                let (port, given) = (flags.port, Endpoint::address_option(service));
                let why = format!("{given}={address} names a Unix socket");
                notes.push(Note::Warning(format!("{option}={port} has no effect: {why}")));
            }
            Place::Socket(socket(service, path, flags)?)
        }
        None if address.starts_with(ABSTRACT) => {
            return Err(refused(service, address, "abstract names are not supported"));
        }
        None => {
            let (address, is_shared) = (address.to_owned(), flags.reuses_port);
            Place::Port(PortPlace { address, port: port(service, flags.port)?, is_shared })
        }
    };
    Ok(Endpoint { service, place })
}

/// Checks the path of a Unix socket.
fn socket(service: &str, path: &str, flags: &EndpointFlags) -> Result<PathBuf, FlagError> {
    let refused = |reason: &str| refused(service, &format!("{UNIX}{path}"), reason);
    if path.is_empty() {
        return Err(refused("the path of the Unix socket is missing"));
    }
    if path.len() > LONGEST_PATH {
        let reason = format!(
            "the path has {} bytes, and that of a Unix socket at most {LONGEST_PATH}",
            path.len()
        );
        return Err(refused(&reason));
    }
    if flags.reuses_port {
        let reason = format!(
            "a Unix socket has one server; leave out --reuse-{}-port",
            service.to_lowercase()
        );
        return Err(refused(&reason));
    }
    Ok(PathBuf::from(path))
}

fn refused(service: &str, address: &str, reason: &str) -> FlagError {
    let option = Endpoint::address_option(service);
    FlagError::Rule(format!("Error: {option}={address}: {reason}."))
}

/// Checks the path of the socket for upgrades.
pub(super) fn check_takeover(
    path: Option<&Path>,
    endpoints: &[Option<Endpoint>],
) -> Result<(), FlagError> {
    let Some(path) = path else { return Ok(()) };
    let place = Place::Socket(path.to_owned());
    let length = path.as_os_str().len();
    let reason = match endpoints.iter().flatten().find(|one| one.place == place) {
        Some(Endpoint { service, .. }) => {
            format!("{service} has this Unix socket; take another path")
        }
        None if length == 0 => "the path of the Unix socket is missing".to_owned(),
        None if path.to_string_lossy().starts_with(UNIX) => {
            format!("write the path alone, without '{UNIX}'")
        }
        None if length > LONGEST_PATH => {
            format!("the path has {length} bytes, and that of a Unix socket at most {LONGEST_PATH}")
        }
        None => return Ok(()),
    };
    Err(FlagError::Rule(format!("Error: --takeover={}: {reason}.", path.display())))
}

/// Returns the address of metrics: the given one, else that of HTTP, if it has one.
pub fn metrics_address(flags: &ServeFlags) -> &str {
    let of_http = if is_unix(&flags.http.address) { LOCAL } else { &flags.http.address };
    flags.metrics_address.as_deref().unwrap_or(of_http)
}

/// Returns true if the address is the path of a Unix socket.
pub fn is_unix(address: &str) -> bool {
    address.starts_with(UNIX)
}

fn port(service: &str, given: i64) -> Result<u16, FlagError> {
    u16::try_from(given).map_err(|_| {
        let option = Endpoint::port_option(service);
        let got = given.to_string();
        let reason = ValueError::OutOfBounds { got, min: 0, max: u16::MAX.into() };
        BadValue { option, reason }.into()
    })
}

fn check_collisions(endpoints: &[&Endpoint]) -> Result<(), FlagError> {
    for (index, one) in endpoints.iter().enumerate() {
        let others = endpoints.iter().skip(index + 1);
        let Some(other) = others.into_iter().find(|other| collides(&one.place, &other.place))
        else {
            continue;
        };
        let (kind, of_another) = match one.place {
            Place::Port(_) => ("address and port", "port"),
            Place::Socket(_) => ("Unix socket", "path"),
        };
        return Err(FlagError::Rule(format!(
            "The server cannot listen to {} requests and {} requests at the same {kind} {}; give one of them another \
             {of_another}",
            one.service, other.service, one.place
        )));
    }
    Ok(())
}

/// Checks the range of ports that a platform allows besides its own.
fn check_range(endpoints: &[&Endpoint], first: i64, last: i64) -> Result<(), FlagError> {
    let others = endpoints.iter().filter(|one| one.service != "SageMaker");
    let mut ports = others.filter_map(|one| Some((one.service, i64::from(one.port()?.port))));
    match ports.find(|(_, port)| !(first..=last).contains(port)) {
        None => Ok(()),
        Some((service, port)) => Err(FlagError::Rule(format!(
            "The server cannot listen to {service} requests at port {port}, allowed port range is [{first}, {last}]"
        ))),
    }
}

fn collides(one: &Place, other: &Place) -> bool {
    let is_any = |place: &PortPlace| matches!(&*place.address, "0.0.0.0" | "::" | "[::]");
    match (one, other) {
        (Place::Port(one), Place::Port(other)) => {
            one.port != 0
                && one.port == other.port
                && (one.address == other.address || is_any(one) || is_any(other))
        }
        (Place::Socket(one), Place::Socket(other)) => one == other,
        _ => false,
    }
}

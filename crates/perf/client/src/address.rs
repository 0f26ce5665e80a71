//! Addresses of servers as people type them.

use std::path::PathBuf;

use crate::{Endpoint, Protocol};

/// Most bytes of the path of a Unix socket on Linux.
const LONGEST_SOCKET_PATH: usize = 107;

/// The reason why a text is not a server address, and the expected form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is a path without the scheme of Unix sockets.
    #[error("the address of a Unix socket is unix:{0}")]
    NoUnixScheme(String),
    /// It has the scheme of Unix sockets and no path.
    #[error("a Unix socket needs its path, for example unix:/run/galatea.sock")]
    NoSocketPath,
    /// It has two slashes after the scheme of Unix sockets, and not three.
    #[error("the address of a Unix socket is unix:PATH or unix:///PATH, with no host")]
    HostOfUnixSocket,
    /// The path of the Unix socket is too long for the operating system.
    #[error(
        "the path of a Unix socket has at most {LONGEST_SOCKET_PATH} bytes, this one has {0}; give a relative path"
    )]
    LongSocketPath(usize),
    /// It names a Unix socket that has no path.
    #[error("abstract Unix sockets are not supported, expected unix:PATH")]
    AbstractUnixSocket,
    /// It has only digits.
    #[error("a port without a host, expected localhost:{0}")]
    OnlyPort(String),
    /// It has a comma.
    #[error("it must name one server")]
    Several,
    /// It has an `@`.
    #[error("it must not have a user name; a header (-H) can carry credentials")]
    UserName,
    /// It has the scheme of gRPC, with HTTP.
    #[error("'{0}://' needs the option -i grpc")]
    NeedsGrpc(String),
    /// It has a scheme with TLS, with gRPC.
    #[error("with -i grpc it is host:port alone; --ssl-grpc-use-ssl true switches TLS on")]
    GrpcOverTls,
    /// It has the scheme of HTTP, with gRPC.
    #[error(
        "with -i grpc it is host:port alone, and the port is the one for gRPC (8001 by default)"
    )]
    GrpcWithHttp,
    /// The protocol does not have this scheme.
    #[error("unknown scheme '{scheme}', expected {}", match protocol {
        Protocol::Http => "http or https",
        Protocol::Grpc => "host:port alone",
    })]
    UnknownScheme {
        /// The scheme as typed.
        scheme: String,
        /// The requested protocol.
        protocol: Protocol,
    },
    /// It has a path, with gRPC.
    #[error("gRPC has no path, '{0}' must go")]
    PathInGrpc(String),
    /// Its path cannot be the start of the client's paths.
    #[error("the path must have no query and no blanks")]
    Path,
    /// It has more than one colon.
    #[error("an IPv6 address must stand in brackets, as in [::1]:8000")]
    NoBrackets,
    /// It has no host, or an impossible one.
    #[error("expected host:port, for example localhost:{port}, or [::1]:{port}", port = .0.default_port())]
    NoHost(Protocol),
    /// The colon is not followed by a port.
    #[error(
        "'{text}' is not a port, expected a number from 1 to 65535 (Triton's for {} is {})",
        protocol.name(), protocol.default_port()
    )]
    Port {
        /// The port as typed.
        text: String,
        /// The requested protocol.
        protocol: Protocol,
    },
}

/// A server's address as people type it.
#[derive(Debug, PartialEq, Eq)]
pub struct Address {
    /// The socket of the server; without a port in the text it has the protocol's default.
    pub endpoint: Endpoint,
    /// The path before `/v2`: empty, or `/prefix` without a slash at its end.
    pub path: String,
}

impl Address {
    /// Reads `host`, `host:port` or `[v6]:port`. A scheme of the protocol (`http://`, `https://`, `grpc://`) may precede it,
    /// and over HTTP a path may follow. Reads `unix:PATH` and `unix:///PATH` as well.
    ///
    /// # Errors
    /// If the text is not such an address; the error has the expected form.
    pub fn read(url: &str, protocol: Protocol) -> Result<Self, AddressError> {
        if url.starts_with(['/', '.']) {
            return Err(AddressError::NoUnixScheme(url.to_owned()));
        }
        if let Some(place) = after_scheme(url, "unix:") {
            let endpoint = Endpoint::Unix(read_socket_path(place)?);
            return Ok(Self { endpoint, path: String::new() });
        }
        if after_scheme(url, "unix-abstract:").is_some() {
            return Err(AddressError::AbstractUnixSocket);
        }
        let rest = match url.split_once("://") {
            Some((scheme, rest)) => {
                check_scheme(scheme, protocol)?;
                rest
            }
            None => url,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = path.trim_end_matches('/');
        check_path(path, protocol)?;
        if !authority.is_empty() && authority.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(AddressError::OnlyPort(authority.to_owned()));
        }
        if authority.contains(',') {
            return Err(AddressError::Several);
        }
        if authority.contains('@') {
            return Err(AddressError::UserName);
        }
        let (host, port) = split_authority(authority, protocol)?;
        let port = port.map(|port| read_port(port, protocol)).transpose()?;
        let endpoint =
            Endpoint::Tcp { host: host.to_owned(), port: port.unwrap_or(protocol.default_port()) };
        Ok(Self { endpoint, path: path.to_owned() })
    }
}

/// Returns the text after the scheme, which is in any case; `None`: the URL has another scheme.
fn after_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Reads the text after `unix:`, a path with no slashes or two before it.
fn read_socket_path(place: &str) -> Result<PathBuf, AddressError> {
    let path = match place.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => return Err(AddressError::HostOfUnixSocket),
        None => place,
    };
    match path.len() {
        0 => Err(AddressError::NoSocketPath),
        length if length > LONGEST_SOCKET_PATH => Err(AddressError::LongSocketPath(length)),
        _ => Ok(PathBuf::from(path)),
    }
}

fn check_scheme(scheme: &str, protocol: Protocol) -> Result<(), AddressError> {
    let is_any_of = |known: &[&str]| known.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    match protocol {
        Protocol::Http if is_any_of(&["http", "https"]) => Ok(()),
        Protocol::Grpc if is_any_of(&["grpc"]) => Ok(()),
        Protocol::Http if is_any_of(&["grpc", "grpcs"]) => {
            Err(AddressError::NeedsGrpc(scheme.to_owned()))
        }
        Protocol::Grpc if is_any_of(&["https", "grpcs"]) => Err(AddressError::GrpcOverTls),
        Protocol::Grpc if is_any_of(&["http"]) => Err(AddressError::GrpcWithHttp),
        _ => Err(AddressError::UnknownScheme { scheme: scheme.to_owned(), protocol }),
    }
}

fn check_path(path: &str, protocol: Protocol) -> Result<(), AddressError> {
    if protocol == Protocol::Grpc && !path.is_empty() {
        return Err(AddressError::PathInGrpc(path.to_owned()));
    }
    match path.find(|c: char| matches!(c, '?' | '#') || c.is_whitespace() || c.is_control()) {
        Some(_) => Err(AddressError::Path),
        None => Ok(()),
    }
}

/// Splits into the host and the text after its colon.
fn split_authority(
    authority: &str,
    protocol: Protocol,
) -> Result<(&str, Option<&str>), AddressError> {
    let example = || AddressError::NoHost(protocol);
    if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, behind) = bracketed.split_once(']').ok_or_else(example)?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| example())?;
        let port = behind.strip_prefix(':');
        return if behind.is_empty() || port.is_some() { Ok((host, port)) } else { Err(example()) };
    }
    let (host, port) = match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            return Err(AddressError::NoBrackets);
        }
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || !host.chars().all(is_name) {
        return Err(example());
    }
    Ok((host, port))
}

fn read_port(text: &str, protocol: Protocol) -> Result<u16, AddressError> {
    // `parse` would accept a sign.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port @ 1..) if is_number => Ok(port),
        _ => Err(AddressError::Port { text: text.to_owned(), protocol }),
    }
}

#[cfg(test)]
mod tests {
    use crate::Protocol::{Grpc, Http};

    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (protocol, url, host, port, path) in [
            (Http, "localhost:8000", "localhost", 8000, ""),
            (Http, "triton_1", "triton_1", 8000, ""),
            (Http, "127.0.0.1:8000/", "127.0.0.1", 8000, ""),
            (Http, "http://h:1/a/b/", "h", 1, "/a/b"),
            (Http, "HTTPS://h", "h", 8000, ""),
            (Http, "[::1]", "::1", 8000, ""),
            (Http, "unix", "unix", 8000, ""),
            (Grpc, "[::1]:8001", "::1", 8001, ""),
            (Grpc, "grpc://h:1/", "h", 1, ""),
            (Grpc, "h", "h", 8001, ""),
        ] {
            let endpoint = Endpoint::Tcp { host: host.to_owned(), port };
            let expected = Address { endpoint, path: path.to_owned() };
            assert_eq!(Address::read(url, protocol), Ok(expected), "{url}");
        }
    }

    #[test]
    fn unix_sockets_are_named_as_grpc_names_them() {
        let longest = format!("/{}", "a".repeat(LONGEST_SOCKET_PATH - 1));
        for (url, path) in [
            ("unix:/tmp/a", "/tmp/a"),
            ("unix:///tmp/a", "/tmp/a"),
            ("UNIX:a b/c:1", "a b/c:1"),
            (format!("unix:{longest}").as_str(), longest.as_str()),
        ] {
            for protocol in [Http, Grpc] {
                let expected =
                    Address { endpoint: Endpoint::Unix(path.into()), path: String::new() };
                assert_eq!(Address::read(url, protocol), Ok(expected), "{url}");
            }
        }
        let long = format!("unix:{longest}a");
        for (url, expected) in [
            ("/tmp/a", "unix:/tmp/a"),
            ("./a", "unix:./a"),
            ("unix:", "needs its path"),
            ("unix://host/tmp/a", "no host"),
            ("unix://", "no host"),
            ("unix-abstract:a", "abstract"),
            (long.as_str(), "at most 107 bytes, this one has 108"),
        ] {
            let reason = Address::read(url, Grpc).expect_err(url).to_string();
            assert!(reason.contains(expected), "{url}: {reason}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_the_expected_form() {
        for (protocol, url, expected) in [
            (Http, "", "host:port"),
            (Http, "18000", "expected localhost:18000"),
            (Grpc, "18001", "expected localhost:18001"),
            (Http, ":8000", "host:port"),
            (Http, "http://", "host:port"),
            (Http, "http://:8000/a", "host:port"),
            (Http, "h:", "'' is not a port"),
            (Http, "h:x", "'x' is not a port"),
            (Http, "h:+1", "'+1' is not a port"),
            (Http, "h:0", "from 1 to 65535"),
            (Grpc, "h:99999", "for gRPC is 8001"),
            (Http, "[::1", "[::1]:8000"),
            (Http, "[::1]8000", "host:port"),
            (Grpc, "[h]:1", "host:port"),
            (Http, "::1:8000", "in brackets"),
            (Http, "a b:1", "host:port"),
            (Http, "h:1,h:2", "one server"),
            (Http, "h,g", "one server"),
            (Http, "me:secret@h:1", "not have a user name"),
            (Http, "h:1/a?b", "no query"),
            (Http, "grpc://h:1", "-i grpc"),
            (Http, "ftp://h:1", "unknown scheme 'ftp'"),
            (Grpc, "http://h:8000", "8001"),
            (Grpc, "https://h:8000", "--ssl-grpc-use-ssl"),
            (Grpc, "tcp://h:1", "unknown scheme 'tcp'"),
            (Grpc, "h:1/a", "no path"),
        ] {
            let reason = Address::read(url, protocol).expect_err(url).to_string();
            assert!(reason.contains(expected), "{url}: {reason}");
        }
    }
}

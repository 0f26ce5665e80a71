//! Addresses of servers as people type them.

use crate::Protocol;

/// The reason why a text is not a server address, and the expected form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is the path of a socket.
    #[error("Unix sockets are not supported, expected host:port")]
    UnixSocket,
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
pub struct Address<'a> {
    /// Name or address, IPv6 without brackets.
    pub host: &'a str,
    /// The port; `None`: the protocol's default.
    pub port: Option<u16>,
    /// The path before `/v2`: empty, or `/prefix` without a slash at its end.
    pub path: &'a str,
}

impl<'a> Address<'a> {
    /// Reads `host`, `host:port` or `[v6]:port`. A scheme of the protocol (`http://`, `https://`, `grpc://`) may precede it,
    /// and over HTTP a path may follow.
    ///
    /// # Errors
    /// If the text is not such an address; the error has the expected form.
    pub fn read(url: &'a str, protocol: Protocol) -> Result<Self, AddressError> {
        if url.starts_with(['/', '.']) || url.starts_with("unix:") {
            return Err(AddressError::UnixSocket);
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
        Ok(Self { host, port, path })
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
            (Http, "localhost:8000", "localhost", Some(8000), ""),
            (Http, "triton_1", "triton_1", None, ""),
            (Http, "127.0.0.1:8000/", "127.0.0.1", Some(8000), ""),
            (Http, "http://h:1/a/b/", "h", Some(1), "/a/b"),
            (Http, "HTTPS://h", "h", None, ""),
            (Http, "[::1]", "::1", None, ""),
            (Grpc, "[::1]:8001", "::1", Some(8001), ""),
            (Grpc, "grpc://h:1/", "h", Some(1), ""),
        ] {
            assert_eq!(Address::read(url, protocol), Ok(Address { host, port, path }), "{url}");
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
            (Http, "unix:/tmp/a", "Unix sockets"),
            (Grpc, "unix:///tmp/a", "Unix sockets"),
            (Http, "/tmp/a", "Unix sockets"),
            (Http, "./a", "Unix sockets"),
        ] {
            let reason = Address::read(url, protocol).expect_err(url).to_string();
            assert!(reason.contains(expected), "{url}: {reason}");
        }
    }
}

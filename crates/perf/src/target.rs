//! `-u`: from the text to a place to connect to.

use galatea_client::{Protocol, Target};
use galatea_perf_types::{
    failure::{Failure, Result},
    settings::Settings,
};

/// `host`, `host:port`, `[v6]:port`, each with `http://`, `https://` or `grpc://` before and, for HTTP, a path
/// behind.
pub fn target(settings: &Settings) -> Result<Target> {
    let address = Address::read(&settings.url).ok_or_else(|| bad(settings))?;
    if settings.protocol == Protocol::Grpc && !address.path.is_empty() {
        return Err(bad(settings));
    }
    let default_port = match settings.protocol {
        Protocol::Http => 8000,
        Protocol::Grpc => 8001,
    };
    Ok(Target {
        protocol: settings.protocol,
        host: address.host.to_owned(),
        port: address.port.unwrap_or(default_port),
        base_path: address.path.to_owned(),
        headers: settings.headers.clone(),
        tls: settings.tls.clone(),
        compression: settings.compression,
    })
}

fn bad(settings: &Settings) -> Failure {
    Failure::option(format!(
        "cannot read the URL '{}' (-u): expected host:port, for example localhost:8000, or [::1]:8000",
        settings.url
    ))
}

struct Address<'a> {
    host: &'a str,
    port: Option<u16>,
    path: &'a str,
}

impl<'a> Address<'a> {
    fn read(url: &'a str) -> Option<Self> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']')?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return None;
        }
        let port = port
            .map(|port| port.parse().ok())
            .map_or(Some(None), |port: Option<u16>| port.map(Some))?;
        Some(Self { host, port, path: path.trim_end_matches('/') })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Option<(&str, Option<u16>, &str)> {
        Address::read(url).map(|address| (address.host, address.port, address.path))
    }

    #[test]
    fn addresses() {
        assert_eq!(read("localhost:8000"), Some(("localhost", Some(8000), "")));
        assert_eq!(read("triton"), Some(("triton", None, "")));
        assert_eq!(read("http://h:1/a/b/"), Some(("h", Some(1), "/a/b")));
        assert_eq!(read("[::1]:8001"), Some(("::1", Some(8001), "")));
        assert_eq!(read("[::1]"), Some(("::1", None, "")));
        for odd in ["", ":8000", "h:", "h:x", "h:99999", "[::1", "[::1]8000", "http://"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}

//! A connection to the server, within bounds of time and size.

use std::time::Duration;

use galatea_client::{Address, AddressError, Connector, Protocol, Target, Tls};
use tokio::{runtime, task::LocalSet};

use crate::{error::CommandError, options::ServerOptions};

/// Longest response in bytes.
const RESPONSE_LIMIT: usize = 64 << 20;

/// Default timeout in seconds.
const DEFAULT_TIMEOUT: f64 = 60.0;

/// Connects and asks, all within the timeout of the options.
pub(crate) fn ask<T>(
    options: &ServerOptions,
    question: impl AsyncFnOnce(&Connector, &Target) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let target = target(options)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let connector = connector(&target)?;
    let seconds = options.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let late = || CommandError::Late { url: target.url(), seconds };
    local.block_on(&runtime, async {
        let limit = Duration::from_secs_f64(seconds);
        let asked = tokio::time::timeout(limit, question(&connector, &target)).await;
        asked.unwrap_or_else(|_| Err(late()))
    })
}

/// Makes a connector without connecting. Longer responses than [`RESPONSE_LIMIT`] are errors.
pub(crate) fn connector(target: &Target) -> Result<Connector, CommandError> {
    Ok(Connector::with_response_limit(target.clone(), RESPONSE_LIMIT)?)
}

pub(crate) fn target(options: &ServerOptions) -> Result<Target, CommandError> {
    let url = options.url.as_deref().unwrap_or("localhost");
    let lower = url.to_ascii_lowercase();
    let says_grpc = lower.starts_with("grpc://") || lower.starts_with("grpcs://");
    let protocol = match options.protocol.as_deref() {
        Some(name) if name.eq_ignore_ascii_case("grpc") => Protocol::Grpc,
        None if says_grpc => Protocol::Grpc,
        _ => Protocol::Http,
    };
    let is_grpcs = protocol == Protocol::Grpc && lower.starts_with("grpcs://");
    let plain = if is_grpcs { &url["grpcs://".len()..] } else { url };
    let address = Address::read(plain, protocol).map_err(|reason| match reason {
        AddressError::GrpcOverTls => CommandError::GrpcTls(url.to_owned()),
        reason => CommandError::Address { url: url.to_owned(), reason },
    })?;
    let has_tls = is_grpcs || lower.starts_with("https://");
    Ok(Target {
        protocol,
        endpoint: address.endpoint,
        base_path: address.path,
        headers: options.headers.clone(),
        tls: has_tls.then(|| tls(options)),
        compression: Default::default(),
    })
}

/// Returns TLS settings with the named authorities, or else the system's.
pub(crate) fn tls(options: &ServerOptions) -> Tls {
    Tls {
        roots: options.authorities.clone(),
        certificate_chain: options.certificate.clone(),
        private_key: options.key.clone(),
        ..Tls::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(url: Option<&str>, protocol: Option<&str>) -> Result<String, String> {
        let (url, protocol) = (url.map(str::to_owned), protocol.map(str::to_owned));
        let options = ServerOptions { url, protocol, ..ServerOptions::default() };
        target(&options).map(|target| target.url()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_url_sets_the_protocol_unless_an_option_does() {
        for (url, protocol, expected) in [
            (None, None, "http://localhost:8000"),
            (None, Some("GRPC"), "grpc://localhost:8001"),
            (Some("h:1"), Some("grpc"), "grpc://h:1"),
            (Some("grpc://h"), None, "grpc://h:8001"),
            (Some("grpcs://h:443"), None, "grpcs://h:443"),
            (Some("https://h:1/a"), None, "https://h:1/a"),
            (Some("unix:///a/b"), None, "unix:/a/b"),
            (Some("unix:b"), Some("grpc"), "unix:b"),
        ] {
            assert_eq!(target_of(url, protocol).as_deref(), Ok(expected));
        }
        let refused = |url, protocol| target_of(Some(url), Some(protocol)).expect_err(url);
        assert!(refused("https://h:1", "grpc").contains("grpcs://host:port"));
        assert!(refused("grpc://h:1", "http").contains("-i grpc"));
        assert!(refused("h:x", "http").contains("'x' is not a port"));
    }
}

//! A plain GET, for pages outside the protocol.

use bytes::Bytes;
use galatea_types::{Error, Result};

use super::HttpConnection;
use crate::{Compression, Endpoint, Protocol, Target, Tls, transport::Route};

/// The options of a GET.
#[derive(Clone, Debug)]
pub struct GetOptions {
    /// TLS settings for `https://`, which is refused without them.
    pub tls: Option<Tls>,
    /// Headers of the request.
    pub headers: Vec<(String, String)>,
    /// Largest response in bytes, with its head.
    pub limit: usize,
}

impl Default for GetOptions {
    /// No limit.
    fn default() -> Self {
        Self { tls: None, headers: Vec::new(), limit: usize::MAX }
    }
}

/// Fetches `url`, with or without `http://` in front, and returns status and body.
///
/// # Errors
/// If the URL has another scheme, there is no response, or it is longer than the limit; if the files for TLS are not usable,
/// or a header cannot be sent.
pub async fn get(url: &str, options: GetOptions) -> Result<(u16, Bytes)> {
    let GetOptions { tls, headers, limit } = options;
    let (target, path) = parse(url, tls.as_ref()).ok_or_else(|| {
        Error::invalid_arg(format!("'{url}' is not a URL of the form http://host:port/path"))
    })?;
    let mut connection = HttpConnection::new(Route::new(Target { headers, ..target }, limit)?);
    let response = connection.exchange("GET", &path, None).await?;
    Ok((response.status, response.body))
}

fn parse(url: &str, tls: Option<&Tls>) -> Option<(Target, String)> {
    let uri: http::Uri = match url.contains("://") {
        true => url.parse().ok()?,
        false => format!("http://{url}").parse().ok()?,
    };
    let (tls, port) = match uri.scheme_str() {
        Some("http") => (None, 80),
        Some("https") => (Some(tls?), 443),
        _ => return None,
    };
    let host = uri.host()?;
    let target = Target {
        protocol: Protocol::Http,
        endpoint: Endpoint::Tcp {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(port),
        },
        base_path: String::new(),
        headers: Vec::new(),
        tls: tls.cloned(),
        compression: Compression::None,
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Some((target, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, host: &str, port: u16, path: &str) {
        let (target, found) = parse(url, None).unwrap();
        let endpoint = Endpoint::Tcp { host: host.to_owned(), port };
        assert_eq!((target.endpoint, found.as_str()), (endpoint, path));
    }

    #[test]
    fn urls_are_parsed_with_and_without_scheme() {
        check("localhost:8002/metrics", "localhost", 8002, "/metrics");
        check("http://localhost", "localhost", 80, "/");
        check("http://[::1]:8002/a?b=c", "::1", 8002, "/a?b=c");
        for wrong in ["", "https://localhost/", "http://", "ftp://a/b"] {
            assert!(parse(wrong, None).is_none(), "{wrong}");
        }
    }
}

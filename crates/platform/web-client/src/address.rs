//! Addresses of servers: those that may be used, and those that they may redirect to.

use std::net::IpAddr;

use http::{HeaderValue, Uri};
use url::Url;

use crate::failure::{HttpFailure, Problem};

/// Returns true if an address uses no encryption.
pub fn is_plain(uri: &Uri) -> bool {
    uri.scheme_str() == Some("http")
}

/// Returns true if two addresses are of one server.
pub fn is_same(one: &Uri, other: &Uri) -> bool {
    one.scheme() == other.scheme() && host(one).eq_ignore_ascii_case(host(other))
}

/// Returns an address for messages: the text behind `?` and `#` may be secret.
pub fn shown(text: &str) -> &str {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns host and port.
pub(crate) fn host(uri: &Uri) -> &str {
    uri.authority().map_or("", |authority| authority.as_str())
}

pub(crate) fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Parses an address. Plain HTTP is only for servers on this machine: fetched code runs here, and nothing else protects it
/// on its way.
///
/// # Errors
/// For an invalid address, or one of another host without encryption.
pub fn checked_uri(text: &str) -> Result<Uri, HttpFailure> {
    let uri = any_uri(text)?;
    if is_plain(&uri) && !is_this_machine(&uri) {
        return Err(invalid(
            text,
            "is not encrypted: models are programs, and others could change them on the way; use https://",
        ));
    }
    Ok(uri)
}

/// Parses an address, which may be plain HTTP to any host. Use it only for what is sent there, never for what runs here.
///
/// # Errors
/// For an invalid address.
pub fn any_uri(text: &str) -> Result<Uri, HttpFailure> {
    let uri: Uri = text.parse().map_err(|_| invalid(text, "is not valid"))?;
    let has_user = host(&uri).contains('@');
    match uri.scheme_str() {
        _ if uri.host().is_none_or(str::is_empty) => Err(invalid(text, "names no host")),
        _ if has_user => Err(invalid(text, "has a user or password in it, which logs would show")),
        Some("https" | "http") => Ok(uri),
        _ => Err(invalid(text, "is neither https:// nor http://")),
    }
}

fn invalid(address: &str, problem: &str) -> HttpFailure {
    HttpFailure::new(Problem::Address, format!("the address '{}' {problem}", shown(address)))
}

/// Returns the address of a redirect. It never leads from an encrypted connection to a plain one, and to a plain one of
/// another machine only if `allows_plain`.
pub(crate) fn redirected(
    from: &Uri,
    location: &HeaderValue,
    allows_plain: bool,
) -> Result<Uri, HttpFailure> {
    let failed = |text: String| HttpFailure::new(Problem::Address, text).within(host(from));
    let joined = location
        .to_str()
        .ok()
        .and_then(|location| Url::parse(&from.to_string()).ok()?.join(location).ok());
    let joined =
        joined.ok_or_else(|| failed("it redirects to an address that is not valid".to_owned()))?;
    let check = if allows_plain { any_uri } else { checked_uri };
    let target = check(joined.as_str()).map_err(|failure| failure.within(host(from)))?;
    if !is_plain(from) && is_plain(&target) {
        return Err(failed(format!("it redirects to '{}', which is not encrypted", host(&target))));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_must_be_https_or_local() {
        for good in ["https://h/x", "http://127.0.0.1:1/x", "http://[::1]:1", "http://localhost/"] {
            assert!(checked_uri(good).is_ok(), "{good}");
        }
        for (bad, problem) in [
            ("http://h/x", "is not encrypted"),
            ("http://127.0.0.1.evil/x", "is not encrypted"),
            ("http://localhost.evil/x", "is not encrypted"),
            ("https://me:secret@h/x", "has a user or password"),
            ("ftp://h/x", "is neither https:// nor http://"),
            ("/x", "names no host"),
            ("https://h/ x", "is not valid"),
        ] {
            let text = checked_uri(bad).expect_err(bad).to_string();
            assert!(text.contains(problem), "{text}");
        }
        let text = checked_uri("http://h/x?signature=secret").expect_err("plain").to_string();
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn redirects_must_stay_encrypted() {
        let from = |text: &str| text.parse::<Uri>().expect("valid");
        let leads_to = |base: &str, location: &'static str, allows_plain| {
            let target = redirected(&from(base), &HeaderValue::from_static(location), allows_plain);
            target.map(|uri| uri.to_string()).map_err(|error| error.to_string())
        };
        let leads = |base, location| leads_to(base, location, false);
        assert_eq!(leads("https://h/a", "/b").expect("same host"), "https://h/b");
        assert_eq!(leads("https://h/a/b", "c?d").expect("same folder"), "https://h/a/c?d");
        assert_eq!(leads("https://h/a", "//c/b").expect("other host"), "https://c/b");
        assert_eq!(leads("https://h/a", "https://c/b?x").expect("other host"), "https://c/b?x");
        for allows_plain in [false, true] {
            let failed = leads_to("https://h/a", "http://127.0.0.1/b", allows_plain);
            assert!(failed.expect_err("plain").contains("not encrypted"));
        }
        let plain = |allows| leads_to("http://127.0.0.1/a", "http://h/b", allows);
        assert!(plain(false).expect_err("plain").contains("not encrypted"));
        assert_eq!(plain(true).expect("allowed"), "http://h/b");
        for odd in ["file:///etc/passwd", "https://u:p@h/", "http://[", "data:x"] {
            assert!(leads("https://h/a", odd).is_err(), "{odd}");
        }
        assert!(is_same(&from("https://H/a"), &from("https://h/b")));
        assert!(!is_same(&from("https://h:1/a"), &from("https://h/a")));
    }
}

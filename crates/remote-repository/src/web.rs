//! GET requests to servers of the web: redirects, statuses, bodies. Servers are strangers; what they send is bounded.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT_ENCODING, AUTHORIZATION, LOCATION, RANGE, RETRY_AFTER, USER_AGENT},
};
use http_body_util::BodyExt;

use crate::{
    error::{FailureKind, RemoteError},
    http_client::{HttpBody, HttpClient, HttpFailure},
    remote_files::ByteStream,
};

/// One after the other.
const MAX_REDIRECTS: usize = 5;

/// A server that wants to be asked later than this is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

const AGENT: &str = concat!("galatea/", env!("CARGO_PKG_VERSION"));

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Get {
    pub uri: Uri,
    /// Sent to the first server alone, never to one that it redirects to.
    pub authorization: Option<HeaderValue>,
    /// The byte it begins with.
    pub from: u64,
    /// Longest body.
    pub most: u64,
    /// More headers for all servers.
    pub headers: HeaderMap,
}

impl Get {
    pub fn new(uri: Uri, most: u64) -> Self {
        Self { uri, authorization: None, from: 0, most, headers: HeaderMap::new() }
    }
}

/// What the last server answered.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    /// Of the first server's response, which may have been a redirect.
    pub first: HeaderMap,
    pub response: Response<HttpBody>,
}

/// Plain HTTP is for servers on this machine: what is fetched runs here, and nothing else protects it on its way.
///
/// # Errors
/// For an address that is none, or of another host.
pub fn checked_uri(text: &str) -> Result<Uri, RemoteError> {
    let invalid = |problem: &str| {
        RemoteError::new(FailureKind::Invalid, format!("the address '{}' {problem}", shown(text)))
    };
    let uri: Uri = text.parse().map_err(|_| invalid("is not valid"))?;
    let host = uri.host().unwrap_or_default();
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    match uri.scheme_str() {
        _ if host.is_empty() => Err(invalid("names no host")),
        _ if has_user => Err(invalid("has a user or password in it, which logs would show")),
        Some("https") => Ok(uri),
        Some("http") if is_loopback(host) => Ok(uri),
        Some("http") => Err(invalid(
            "is not encrypted: models are programs, and who is on the way could change them; use https://",
        )),
        _ => Err(invalid("is neither https:// nor http://")),
    }
}

/// An address for texts: what stands behind `?` and `#` may be secret.
pub fn shown(text: &str) -> &str {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn is_loopback(host: &str) -> bool {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The answer of the last server; of any status that is no redirect.
pub async fn get(http: &HttpClient, asked: &Get) -> Result<Answer, RemoteError> {
    let mut uri = asked.uri.clone();
    let mut first = None;
    for _ in 0..=MAX_REDIRECTS {
        let response = send(http, asked, &uri).await?;
        let status = response.status();
        let first = first.get_or_insert_with(|| response.headers().clone());
        match status.is_redirection().then(|| response.headers().get(LOCATION)).flatten() {
            Some(location) => uri = redirected(&uri, location)?,
            None => return Ok(Answer { status, first: std::mem::take(first), response }),
        }
    }
    let text = format!("{}: more than {MAX_REDIRECTS} redirects", shown(&asked.uri.to_string()));
    Err(RemoteError::new(FailureKind::Invalid, text))
}

async fn send(
    http: &HttpClient,
    asked: &Get,
    uri: &Uri,
) -> Result<Response<HttpBody>, RemoteError> {
    let mut request = Request::get(uri.clone())
        .header(USER_AGENT, AGENT)
        // Ranges and checksums are of the bytes themselves.
        .header(ACCEPT_ENCODING, "identity");
    if asked.from > 0 {
        request = request.header(RANGE, format!("bytes={}-", asked.from));
    }
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    if let Some(secret) = asked.authorization.as_ref().filter(|_| is_same(uri, &asked.uri)) {
        request = request.header(AUTHORIZATION, secret);
    }
    let invalid = |error| RemoteError::new(FailureKind::Invalid, format!("request: {error}"));
    let request = request.body(Bytes::new()).map_err(invalid)?;
    let place = format!("{}://{}", uri.scheme_str().unwrap_or_default(), host(uri));
    http.send(request, asked.most).await.map_err(|failure| of_failure(&failure).within(place))
}

fn host(uri: &Uri) -> &str {
    uri.authority().map_or("", |authority| authority.as_str())
}

/// Whether two addresses are of one server.
pub fn is_same(one: &Uri, other: &Uri) -> bool {
    one.scheme() == other.scheme() && host(one).eq_ignore_ascii_case(host(other))
}

/// Where a redirect leads: never from an encrypted connection to a plain one.
fn redirected(from: &Uri, location: &HeaderValue) -> Result<Uri, RemoteError> {
    let invalid = || {
        let text = format!("{}: it redirects to an address that is not valid", host(from));
        RemoteError::new(FailureKind::Invalid, text)
    };
    let location = location.to_str().map_err(|_| invalid())?;
    let base = format!("{}://{}", from.scheme_str().unwrap_or("https"), host(from));
    let target = match location {
        _ if location.contains("://") => location.to_owned(),
        _ if location.starts_with("//") => {
            format!("{}:{location}", from.scheme_str().unwrap_or("https"))
        }
        _ if location.starts_with('/') => base + location,
        _ => return Err(invalid()),
    };
    let target = checked_uri(&target).map_err(|error| error.within(host(from)))?;
    if from.scheme_str() == Some("https") && target.scheme_str() != Some("https") {
        let text =
            format!("{}: it redirects to '{}', which is not encrypted", host(from), host(&target));
        return Err(RemoteError::new(FailureKind::Invalid, text));
    }
    Ok(target)
}

/// What a failure of the connection means.
pub fn of_failure(failure: &HttpFailure) -> RemoteError {
    let kind = match failure {
        HttpFailure::TooLong(_) | HttpFailure::NotEncrypted(_) => FailureKind::Invalid,
        _ => FailureKind::Unavailable,
    };
    RemoteError::new(kind, failure.to_string())
}

/// What a status means that is no success; `text` tells who answered what.
pub fn of_status(status: StatusCode, headers: &HeaderMap, text: String) -> RemoteError {
    let kind = match status.as_u16() {
        401 | 403 | 407 => FailureKind::Denied,
        404 | 410 => FailureKind::Missing,
        412 | 416 => FailureKind::Changed,
        408 | 425 | 429 | 500..=599 => FailureKind::Unavailable,
        _ => FailureKind::Invalid,
    };
    RemoteError::new(kind, text).retry_after(wait(headers))
}

/// As the server wishes, within reason.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// The whole body, as long as the request allows.
pub async fn body(response: Response<HttpBody>) -> Result<Bytes, RemoteError> {
    let collected = response.into_body().collect().await;
    collected.map(|body| body.to_bytes()).map_err(|failure| of_failure(&failure))
}

/// The bytes of an answer from `from` on, whether or not the server knows of ranges.
pub fn bytes_from(answer: Answer, from: u64) -> Result<ByteStream, RemoteError> {
    let skip = match answer.status {
        StatusCode::PARTIAL_CONTENT => match range_start(answer.response.headers()) {
            Some(start) if start == from => 0,
            _ => {
                let text = "the server sent another part of the file than it was asked for";
                return Err(RemoteError::new(FailureKind::Invalid, text));
            }
        },
        _ => from,
    };
    let frames = answer.response.into_body().into_data_stream();
    let left = std::sync::atomic::AtomicU64::new(skip);
    let bytes = frames.map(move |chunk| {
        let mut chunk = chunk.map_err(|failure| of_failure(&failure))?;
        let skipped = left.load(std::sync::atomic::Ordering::Relaxed).min(chunk.len() as u64);
        left.fetch_sub(skipped, std::sync::atomic::Ordering::Relaxed);
        Ok(chunk.split_off(usize::try_from(skipped).unwrap_or(0)))
    });
    Ok(bytes.boxed())
}

/// Of `Content-Range: bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(http::header::CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

/// Bytes that are here already.
pub fn bytes_of(content: Bytes) -> ByteStream {
    stream::iter([Ok(content)]).boxed()
}

/// Text from a stranger for a line of a log.
pub fn printable(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(200).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encrypted_or_of_this_machine() {
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
    fn redirects_stay_encrypted() {
        let from = |text: &str| text.parse::<Uri>().expect("valid");
        let leads = |base: &str, location: &'static str| {
            let target = redirected(&from(base), &HeaderValue::from_static(location));
            target.map(|uri| uri.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(leads("https://h/a", "/b").expect("same host"), "https://h/b");
        assert_eq!(leads("https://h/a", "//c/b").expect("other host"), "https://c/b");
        assert_eq!(leads("https://h/a", "https://c/b?x").expect("other host"), "https://c/b?x");
        assert!(
            leads("https://h/a", "http://127.0.0.1/b")
                .expect_err("plain")
                .contains("not encrypted")
        );
        assert!(
            leads("http://127.0.0.1/a", "http://h/b").expect_err("plain").contains("not encrypted")
        );
        for odd in ["b", "", "file:///etc/passwd", "https://u:p@h/"] {
            assert!(leads("https://h/a", odd).is_err(), "{odd}");
        }
        assert!(is_same(&from("https://H/a"), &from("https://h/b")));
        assert!(!is_same(&from("https://h:1/a"), &from("https://h/a")));
    }

    #[test]
    fn statuses_say_what_to_do() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("100000"));
        let of = |status: u16| {
            let status = StatusCode::from_u16(status).expect("a status");
            of_status(status, &headers, "x".into())
        };
        assert_eq!(of(429).kind(), FailureKind::Unavailable);
        assert_eq!(of(429).wait(), Some(LONGEST_WAIT));
        assert_eq!((of(401).kind(), of(404).kind()), (FailureKind::Denied, FailureKind::Missing));
        assert_eq!((of(416).kind(), of(400).kind()), (FailureKind::Changed, FailureKind::Invalid));
    }

    #[test]
    fn text_of_strangers_is_one_short_line() {
        assert_eq!(printable("a\nb\x1b[31m "), "a b [31m");
        assert_eq!(printable(&"x".repeat(1000)).len(), 200);
    }
}

//! Turns responses of web servers into results for a repository.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use galatea_web_client::Answer;
use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use http_body_util::BodyExt;

use crate::{
    error::{FailureKind, RemoteError},
    remote_files::ByteStream,
};

/// Longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Makes the failure of an unsuccessful status. `text` names the server and its response.
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

/// Returns the wait that the server asks for, within the limit.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// Returns the bytes of a response from `from` on, even if the server does not support ranges.
pub fn bytes_from(answer: Answer, from: u64) -> Result<ByteStream, RemoteError> {
    let skip = match answer.status {
        StatusCode::PARTIAL_CONTENT => match answer.range_start() {
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
        let mut chunk = chunk.map_err(RemoteError::from)?;
        let skipped = left.load(std::sync::atomic::Ordering::Relaxed).min(chunk.len() as u64);
        left.fetch_sub(skipped, std::sync::atomic::Ordering::Relaxed);
        Ok(chunk.split_off(usize::try_from(skipped).unwrap_or(0)))
    });
    Ok(bytes.boxed())
}

/// Makes a stream of bytes that are here already.
pub fn bytes_of(content: Bytes) -> ByteStream {
    stream::iter([Ok(content)]).boxed()
}

/// Makes a remote text printable in a line of the log, with at most `most` characters.
pub fn printable(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(most).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn status_errors_contain_advice() {
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
    fn texts_of_other_servers_are_one_short_line() {
        assert_eq!(printable("a\nb\x1b[31m ", 200), "a b [31m");
        assert_eq!(printable(&"x".repeat(1000), 200).len(), 200);
    }
}

//! The status with which a call ended.

use galatea_types::{Code, Error};
use http::{HeaderMap, StatusCode};
use percent_encoding::percent_decode;

use crate::Target;

/// Returns the status in trailers, or in the headers of a response without a body; `None`: there is none.
pub(super) fn find(headers: &HeaderMap) -> Option<Result<(), Error>> {
    let code = headers.get("grpc-status")?.to_str().ok()?.parse().unwrap_or(2);
    if code == 0 {
        return Some(Ok(()));
    }
    let text = match headers.get("grpc-message") {
        Some(text) if !text.is_empty() => percent_decoded(text.as_bytes()),
        _ => format!("the server gave status {code} ({}) and no text", name(code)),
    };
    Some(Err(Error::new(class(code), text)))
}

/// The error of a response that is not gRPC.
pub(super) fn not_grpc(target: &Target, status: StatusCode) -> Error {
    Error::unavailable(format!(
        "{} answered with HTTP status {status} and no gRPC status; is this the server's gRPC port?",
        target.url()
    ))
}

/// The error of a call whose connection broke. `answered`: this address has spoken gRPC before.
pub(super) fn broken(target: &Target, cause: h2::Error, answered: bool) -> Error {
    let mut text = format!("failed while calling {}: {cause}", target.url());
    if !answered {
        text.push_str("; is this the server's gRPC port?");
    }
    Error::unavailable(text).with_source(cause)
}

fn class(code: u32) -> Code {
    match code {
        1 => Code::Cancelled,
        3 | 9 | 11 => Code::InvalidArg,
        5 => Code::NotFound,
        6 => Code::AlreadyExists,
        12 => Code::Unsupported,
        13 | 15 => Code::Internal,
        4 | 8 | 14 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

fn name(code: u32) -> &'static str {
    match code {
        1 => "CANCELLED",
        2 => "UNKNOWN",
        3 => "INVALID_ARGUMENT",
        4 => "DEADLINE_EXCEEDED",
        5 => "NOT_FOUND",
        6 => "ALREADY_EXISTS",
        7 => "PERMISSION_DENIED",
        8 => "RESOURCE_EXHAUSTED",
        9 => "FAILED_PRECONDITION",
        10 => "ABORTED",
        11 => "OUT_OF_RANGE",
        12 => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        15 => "DATA_LOSS",
        16 => "UNAUTHENTICATED",
        _ => "not known",
    }
}

/// Decodes `%XX` to a byte; a `%` without two hex digits stays as it is.
fn percent_decoded(text: &[u8]) -> String {
    percent_decode(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_messages_are_percent_decoded() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a%20b%c3%A9", "a bé"),
            ("100%", "100%"),
            ("%2", "%2"),
            ("%zz%41", "%zzA"),
            ("%%41", "%A"),
        ] {
            assert_eq!(percent_decoded(text.as_bytes()), expected);
        }
    }

    #[test]
    fn status_codes_are_mapped_to_error_codes() {
        let status = |code: &'static str, text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", code.parse().unwrap());
            headers.insert("grpc-message", text.parse().unwrap());
            find(&headers).unwrap()
        };
        assert!(status("0", "").is_ok());
        let error = status("5", "no%20model").unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::NotFound, "no model"));
        let error = status("12", "").unwrap_err();
        assert!(error.message().contains("UNIMPLEMENTED"), "{error}");
        assert_eq!(status("what", "x").unwrap_err().code(), Code::Unknown);
        assert!(find(&HeaderMap::new()).is_none());
    }
}

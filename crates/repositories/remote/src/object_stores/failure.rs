//! Turns responses of stores into messages without secrets: of a server's text, only its code and its sentence.

use std::error::Error as StdError;

use object_store::{
    Error,
    client::{HttpError, HttpErrorKind},
};

use crate::{
    error::{FailureKind, RemoteError},
    web::printable,
};

/// Most characters of a server's sentence that are passed on.
const MOST_CHARS: usize = 300;

/// Makes a failure from a store's error.
pub fn of(error: &Error) -> RemoteError {
    RemoteError::new(kind_of(error), describe(error))
}

fn kind_of(error: &Error) -> FailureKind {
    match error {
        Error::NotFound { .. } => FailureKind::Missing,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => FailureKind::Denied,
        Error::Precondition { .. } | Error::NotModified { .. } => FailureKind::Changed,
        Error::Generic { source, .. } => kind_of_other(&**source),
        _ => FailureKind::Invalid,
    }
}

fn kind_of_other(error: &(dyn StdError + 'static)) -> FailureKind {
    let levels: Vec<_> = levels(error).collect();
    if let Some(http) = levels.iter().find_map(|level| level.downcast_ref::<HttpError>()) {
        return match http.kind() {
            HttpErrorKind::Decode | HttpErrorKind::Unknown => FailureKind::Invalid,
            _ => FailureKind::Unavailable,
        };
    }
    let Some(answer) = levels.iter().find_map(|level| Answer::parse(&level.to_string())) else {
        return FailureKind::Invalid;
    };
    match (answer.status, answer.code.as_deref()) {
        (_, Some("SlowDown" | "InternalError" | "RequestTimeout" | "ServerBusy")) => {
            FailureKind::Unavailable
        }
        (_, Some("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired")) => FailureKind::Denied,
        (408 | 425 | 429 | 500.., _) => FailureKind::Unavailable,
        (401 | 403, _) => FailureKind::Denied,
        (404, _) => FailureKind::Missing,
        _ => FailureKind::Invalid,
    }
}

fn levels<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |level: &&'a (dyn StdError + 'static)| (*level).source())
}

/// Describes an error in one line.
pub fn describe(error: &Error) -> String {
    if let Some(name) = levels(error).find(|level| level.is::<object_store::path::Error>()) {
        return format!("{}: rename or remove it", printable(&name.to_string(), MOST_CHARS));
    }
    let answer = levels(error).find_map(|level| Answer::parse(&level.to_string()));
    let text = match answer {
        Some(answer) => answer.in_words(),
        None if levels(error)
            .any(|level| level.to_string().contains("redirect without LOCATION")) =>
        {
            "the bucket is in another region: set AWS_REGION".to_owned()
        }
        // The outer levels name the request, with its whole address.
        None => levels(error).last().map(ToString::to_string).unwrap_or_default(),
    };
    printable(&text, MOST_CHARS)
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    reason: String,
    code: Option<String>,
    message: Option<String>,
}

impl Answer {
    /// Parses the text that the stores' library makes of a response: its types are not public.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("status code: ")?;
        let (status, body) = rest.split_once(": ").unwrap_or((rest, ""));
        let (number, reason) = status.split_once(' ').unwrap_or((status, ""));
        let code = element(body, "Code").or_else(|| member(body, "code"));
        let message = element(body, "Message").or_else(|| member(body, "message"));
        let reason = reason.trim_end_matches(':').trim().to_owned();
        Some(Self { status: number.parse().ok()?, reason, code, message })
    }

    fn in_words(&self) -> String {
        let mut text = format!("{} {}", self.status, self.reason);
        if let Some(code) = &self.code {
            text = format!("{code} (HTTP {})", self.status);
        }
        match self.message.as_deref().and_then(|message| message.lines().next()) {
            Some(message) => format!("{text}: {}", message.trim_end_matches('.')),
            None => text,
        }
    }
}

/// Returns the text in the first element of a name.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// Reads a member of a JSON error: `{"error": {"code": ..., "message": ...}}`, or the same members on the top level.
fn member(body: &str, name: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(&body);
    error.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.into() }
    }

    fn status(status: &str, body: &str) -> RemoteError {
        of(&generic(&format!(
            "Error performing GET http://h/?sig=SECRET in 1ms - Server returned non-2xx status code: {status}: {body}"
        )))
    }

    #[test]
    fn errors_have_code_and_message_without_the_address() {
        let slow = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
        let expired = "<Error><Code>ExpiredToken</Code><Message>The token has expired</Message><Token>SECRET</Token></Error>";
        let json = r#"{"error": {"code": "invalid_grant", "message": "no\nmore"}}"#;
        for (answer, kind, text) in [
            (
                status("503 Service Unavailable", slow),
                FailureKind::Unavailable,
                "SlowDown (HTTP 503): Please reduce your request rate",
            ),
            (
                status("400 Bad Request", expired),
                FailureKind::Denied,
                "ExpiredToken (HTTP 400): The token has expired",
            ),
            (
                status("429 Too Many Requests", ""),
                FailureKind::Unavailable,
                "429 Too Many Requests",
            ),
            (status("401 Unauthorized", json), FailureKind::Denied, "invalid_grant (HTTP 401): no"),
            (status("400 Bad Request", "odd"), FailureKind::Invalid, "400 Bad Request"),
            (of(&generic("something\nelse")), FailureKind::Invalid, "something else"),
        ] {
            assert_eq!((answer.kind(), answer.to_string().as_str()), (kind, text));
        }
    }

    #[test]
    fn failed_connections_are_retried() {
        let source = HttpError::new(HttpErrorKind::Connect, std::io::Error::other("refused"));
        let error = of(&Error::Generic { store: "S3", source: Box::new(source) });
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (FailureKind::Unavailable, "refused")
        );
    }
}

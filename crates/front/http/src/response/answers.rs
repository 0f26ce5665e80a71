//! The basic responses of handlers, and the content types.

use galatea_frontend::{AccessError, ClientLimitError, Peer, Restriction};
use galatea_http1::names;
use galatea_protocol::{http::error_body, http_status};
use galatea_types::{Code, Error, Overloaded};
use http::StatusCode;

use crate::response::{Response, body::Body};

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain";

pub(crate) fn reply(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(status, body);
    response.head.set(names::CONTENT_TYPE, content_type);
    response
}

pub(crate) fn ok_json(body: Vec<u8>) -> Response {
    reply(StatusCode::OK, JSON, body.into())
}

/// Returns an error with the status of its code and the body `{"error": text}`. Its content type depends on how far
/// Triton gets with such a request: JSON if its handler sets that early, else text.
pub(crate) fn failure(error: &Error, content_type: &'static str) -> Response {
    let limit = ClientLimitError::of(error);
    let status = match AccessError::of(error) {
        // The client has reached a limit.
        _ if limit.is_some() => StatusCode::TOO_MANY_REQUESTS,
        Some(refused) => status_of_refusal(refused),
        None => status_of(error),
    };
    let mut response = refusal(status, content_type, error.clone());
    if let Some(limit) = limit {
        response.head.set(names::RETRY_AFTER, limit.wait_seconds());
    } else if let Some(overloaded) = Overloaded::of(error) {
        response.head.set(names::RETRY_AFTER, overloaded.wait_seconds());
    } else if error.code() == Code::Exhausted {
        // Frees the memory of the connection, above all its read buffer.
        response.head.set(names::CONNECTION, "close");
    }
    response
}

pub(crate) fn status_of(error: &Error) -> StatusCode {
    StatusCode::from_u16(http_status(error.code())).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(crate) fn failed(mut response: Response, reason: Error) -> Response {
    response.failed = Some(reason);
    response
}

/// Returns an error with a status of its own.
fn refusal(status: StatusCode, content_type: &'static str, reason: Error) -> Response {
    failed(reply(status, content_type, error_body(reason.message()).into()), reason)
}

pub(crate) fn ok_or_failure(result: Result<Vec<u8>, Error>) -> Response {
    match result {
        Ok(json) => ok_json(json),
        Err(error) => failure(&error, JSON),
    }
}

pub(crate) fn not_found() -> Response {
    refusal(StatusCode::NOT_FOUND, TEXT, Error::not_found("Not Found"))
}

pub(crate) fn method_not_allowed(content_type: &'static str) -> Response {
    let reason = Error::unsupported("Method Not Allowed");
    refusal(StatusCode::METHOD_NOT_ALLOWED, content_type, reason)
}

/// Returns 200 for probes and a text for people. Everyone may ask this, so only the log names the repository.
pub(crate) fn ready_but(repositories_away: usize) -> Response {
    let text = format!(
        "ready; {repositories_away} of the model repositories cannot be read now: the log says which and why; loaded \
         models stay loaded\n"
    );
    reply(StatusCode::OK, TEXT, Body::from(text.into_bytes()))
}

/// Returns 503 with an empty body: the readiness of a server that is about to exit.
pub(crate) fn leaving() -> Response {
    reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, Body::default())
}

/// Returns the refusal of a call whose required header is missing or has another value.
pub(crate) fn restricted(restriction: &Restriction) -> Response {
    let text = format!("This API is restricted, expecting header '{}'", restriction.header());
    forbidden(Error::invalid_arg(text), TEXT)
}

fn status_of_refusal(error: &AccessError) -> StatusCode {
    match error {
        AccessError::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
        AccessError::Denied { .. } | AccessError::Closed { .. } => StatusCode::FORBIDDEN,
    }
}

/// The form of a refusal.
#[derive(Clone, Copy)]
pub(crate) struct RefusalForm {
    pub content_type: &'static str,
    /// True if a browser shows the refusal and lets its user type a key.
    pub is_page: bool,
}

impl RefusalForm {
    pub const TEXT: Self = Self::of_call(TEXT);

    /// Returns the form for calls of programs.
    pub const fn of_call(content_type: &'static str) -> Self {
        Self { content_type, is_page: false }
    }
}

/// The ways in which clients can authenticate. Browsers ask their users for the second.
const CHALLENGE: &str = "Bearer realm=\"galatea\"";
const BROWSER_CHALLENGE: &str = "Basic realm=\"galatea\", charset=\"UTF-8\"";

/// Returns 401 or 403 for a client without proof or permission. The log line names its address.
pub(crate) fn not_admitted(error: &AccessError, peer: Peer, form: RefusalForm) -> Response {
    let status = status_of_refusal(error);
    let text = error.to_string();
    let mut response = reply(status, form.content_type, error_body(&text).into());
    if status == StatusCode::UNAUTHORIZED {
        response.head.add(names::WWW_AUTHENTICATE, CHALLENGE);
        if form.is_page {
            response.head.add(names::WWW_AUTHENTICATE, BROWSER_CHALLENGE);
        }
    }
    failed(response, Error::invalid_arg(format!("{text} (client {peer})")))
}

/// Returns 403 for a caller that may not do this, whatever the model or data.
pub(crate) fn forbidden(reason: Error, content_type: &'static str) -> Response {
    refusal(StatusCode::FORBIDDEN, content_type, reason)
}

/// Returns the same status with a JSON body: the server is `what` or not.
pub(crate) fn health_as_json(what: &str, is_well: bool) -> Response {
    let status = if is_well { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    reply(status, JSON, Body::from(format!("{{\"{what}\":{is_well}}}").into_bytes()))
}

/// Returns 200 or 400 with an empty body, the answers to health checks.
pub(crate) fn health(is_well: bool) -> Response {
    let status = if is_well { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    reply(status, TEXT, Body::default())
}

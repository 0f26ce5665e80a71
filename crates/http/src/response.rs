//! What a handler answers.

use galatea_http1::ResponseHead;
use galatea_types::Error;
use http::StatusCode;

use crate::body::Body;

/// The response to a request.
pub(crate) struct Response {
    pub head: ResponseHead,
    pub body: Body,
    /// Why the request failed, for the log.
    pub failed: Option<Error>,
}

impl Response {
    /// Without headers.
    pub fn new(status: StatusCode, body: Body) -> Self {
        Self { head: ResponseHead::new(status), body, failed: None }
    }
}

//! A response: its head, and its body in each form.

pub(crate) mod answers;
pub(crate) mod body;
mod counted_bytes;
pub(crate) mod events;
pub(crate) mod stream;
pub(crate) mod streamed_body;

use galatea_http1::ResponseHead;
use galatea_trace::SendTrace;
use galatea_types::Error;
use http::StatusCode;

use crate::response::body::Body;

pub(crate) struct Response {
    pub head: ResponseHead,
    pub body: Body,
    /// The failure of the request, for the log.
    pub failed: Option<Error>,
    /// The end of its trace, if the request is traced.
    pub sending: Option<SendTrace>,
}

impl Response {
    /// Returns a response without headers.
    pub fn new(status: StatusCode, body: Body) -> Self {
        Self { head: ResponseHead::new(status), body, failed: None, sending: None }
    }
}

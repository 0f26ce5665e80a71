//! The protocol over HTTP/1.1.

mod admin;
mod connection;
mod descriptor;
mod events;
mod get;
mod json_data;
mod outputs;
mod parser;
mod request;

pub(crate) use admin::HttpAdmin;
pub(crate) use connection::HttpConnection;
pub(crate) use events::HttpEvents;
pub use get::{GetOptions, get};
pub(crate) use request::HttpInfer;

use bytes::BytesMut;
use galatea_types::{Code, Error, Result};
use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, utf8_percent_encode};

use crate::OutputTensor;
use parser::{ParseError, ParseProgress, Response, ResponseParser};

/// Reads the whole HTTP response to an inference request from `bytes`, as it came from the socket.
///
/// # Errors
/// If the bytes are not a complete response, are an error of the server, or have tensors that cannot be read.
pub fn decode_infer_response(bytes: &[u8]) -> Result<Vec<OutputTensor>> {
    let mut buffer = BytesMut::from(bytes);
    let mut parser = ResponseParser::new(true);
    let response = match parser.advance(&mut buffer) {
        Ok(ParseProgress::Done(response)) => Ok(response),
        Ok(ParseProgress::More(_)) => parser.end(&mut buffer),
        Err(malformed) => Err(malformed),
    };
    let response = response.map_err(|malformed| not_http(malformed, "the server"))?;
    checked(&response, "the request")?;
    outputs::decode(response.body, response.header_length)
}

/// The error of a response that breaks the protocol.
fn not_http(malformed: ParseError, url: &str) -> Error {
    Error::unavailable(format!(
        "the answer of {url} is not HTTP/1.1: {malformed}; is this the server's HTTP port?"
    ))
    .with_source(malformed)
}

/// Returns the error in a response whose status is not 200. `what` names the request.
fn checked(response: &Response, what: &str) -> Result<()> {
    if response.status == 200 {
        return Ok(());
    }
    let code = match response.status {
        400 => Code::InvalidArg,
        404 => Code::NotFound,
        409 => Code::AlreadyExists,
        499 => Code::Cancelled,
        500 => Code::Internal,
        501 => Code::Unsupported,
        502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    Err(Error::new(code, error_text(response, what)))
}

/// Returns the server's error text, or one made from its status.
fn error_text(response: &Response, what: &str) -> String {
    #[derive(serde::Deserialize)]
    struct ErrorDocument {
        error: String,
    }
    let status = response.status;
    if let Ok(document) = serde_json::from_slice::<ErrorDocument>(&response.body) {
        return document.error;
    }
    match std::str::from_utf8(&response.body).map(str::trim) {
        Ok(text) if !text.is_empty() && text.len() <= 1000 => {
            format!("HTTP status {status} for {what}: {text}")
        }
        _ => format!("HTTP status {status} for {what}"),
    }
}

/// Characters that are encoded in a path segment: as few as possible, because Triton does not decode.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'/').add(b'?').add(b'#');

fn path_segment(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

/// Returns `/v2/models/NAME` or `/v2/models/NAME/versions/VERSION`.
fn model_path(model: &str, version: &str) -> String {
    let model = path_segment(model);
    match version {
        "" => format!("/v2/models/{model}"),
        version => format!("/v2/models/{model}/versions/{}", path_segment(version)),
    }
}

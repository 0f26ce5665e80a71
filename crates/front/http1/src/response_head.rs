//! The head of a response.

use std::borrow::Cow;

use http::{Method, StatusCode};
use smallvec::SmallVec;

use crate::Version;

/// Names of response headers, as they are written.
#[allow(missing_docs)]
pub mod names {
    pub const ACCEPT_ENCODING: &str = "Accept-Encoding";
    pub const CONNECTION: &str = "Connection";
    pub const CONTENT_ENCODING: &str = "Content-Encoding";
    pub const CONTENT_TYPE: &str = "Content-Type";
    pub const ETAG: &str = "Etag";
    pub const RETRY_AFTER: &str = "Retry-After";
    pub const SERVER: &str = "Server";
    pub const VARY: &str = "Vary";
    pub const WWW_AUTHENTICATE: &str = "Www-Authenticate";
}

/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValue {
    /// Text without line ends.
    Text(Cow<'static, str>),
    /// A number in decimal digits.
    Number(u64),
}

impl From<&'static str> for HeaderValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for HeaderValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for HeaderValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

/// A response header. Its name is written exactly as it is here, so each is spelled the same everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name with capitals, e.g. `Content-Type`.
    pub name: &'static str,
    /// The value without line ends.
    pub value: HeaderValue,
}

/// Status and headers of a response, in the order in which they are written.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status of the response.
    pub status: StatusCode,
    headers: SmallVec<[Header; 4]>,
}

/// The form in which the body of a response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// No body: there is none, or the client asked for the head alone.
    Nothing,
    /// The plain body; the head has its length.
    Plain,
    /// In chunks.
    Chunked,
    /// The plain body; the connection ends with it.
    UntilClose,
}

impl Encoding {
    /// Returns the form for a response with a body of this length, if it is known.
    pub fn of(version: Version, method: &Method, status: StatusCode, length: Option<u64>) -> Self {
        if *method == Method::HEAD || is_without_body(status) || length == Some(0) {
            return Self::Nothing;
        }
        match (length, version) {
            (Some(_), _) => Self::Plain,
            (None, Version::Http11) => Self::Chunked,
            (None, Version::Http10) => Self::UntilClose,
        }
    }
}

fn is_without_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

impl ResponseHead {
    /// Returns a head without headers.
    pub fn new(status: StatusCode) -> Self {
        Self { status, headers: SmallVec::new() }
    }

    /// Returns the value of the first header with this name.
    pub fn get(&self, name: &str) -> Option<&HeaderValue> {
        self.headers.iter().find(|header| header.name == name).map(|header| &header.value)
    }

    /// Sets the header to this value, at its old position if it exists.
    pub fn set(&mut self, name: &'static str, value: impl Into<HeaderValue>) {
        match self.headers.iter_mut().find(|header| header.name == name) {
            Some(header) => header.value = value.into(),
            None => self.add(name, value),
        }
    }

    /// Adds a header after others with the same name.
    pub fn add(&mut self, name: &'static str, value: impl Into<HeaderValue>) {
        self.headers.push(Header { name, value: value.into() });
    }

    /// Removes the header.
    pub fn remove(&mut self, name: &str) -> Option<HeaderValue> {
        let at = self.headers.iter().position(|header| header.name == name)?;
        Some(self.headers.remove(at).value)
    }

    /// Writes the head of the response to a request with this method, with a body of `length` bytes if that is known.
    pub fn write(
        &self,
        version: Version,
        method: &Method,
        length: Option<u64>,
        into: &mut Vec<u8>,
    ) {
        self.write_status(version, into);
        for Header { name, value } in &self.headers {
            into.extend_from_slice(name.as_bytes());
            into.extend_from_slice(b": ");
            match value {
                HeaderValue::Text(text) => into.extend_from_slice(text.as_bytes()),
                HeaderValue::Number(number) => write_number(*number, into),
            }
            into.extend_from_slice(b"\r\n");
        }
        let is_head = *method == Method::HEAD;
        match length {
            _ if is_without_body(self.status) => {}
            Some(0) if is_head => {}
            Some(length) => {
                into.extend_from_slice(b"Content-Length: ");
                write_number(length, into);
                into.extend_from_slice(b"\r\n");
            }
            None if is_head || version == Version::Http10 => {}
            None => into.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        into.extend_from_slice(b"\r\n");
    }

    fn write_status(&self, version: Version, into: &mut Vec<u8>) {
        if version == Version::Http11 && self.status == StatusCode::OK {
            return into.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        }
        into.extend_from_slice(match version {
            Version::Http10 => b"HTTP/1.0 ",
            Version::Http11 => b"HTTP/1.1 ",
        });
        into.extend_from_slice(self.status.as_str().as_bytes());
        into.push(b' ');
        into.extend_from_slice(self.status.canonical_reason().unwrap_or("<none>").as_bytes());
        into.extend_from_slice(b"\r\n");
    }
}

fn write_number(number: u64, into: &mut Vec<u8>) {
    into.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes the line before the content of a chunk of `length` bytes.
pub fn write_chunk_size(length: usize, into: &mut Vec<u8>) {
    let digits = (usize::BITS - length.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = (length >> (place * 4)) & 15;
        into.push(b"0123456789ABCDEF"[digit]);
    }
    into.extend_from_slice(b"\r\n");
}

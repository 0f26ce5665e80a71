//! Errors of request heads.

use http::StatusCode;

/// The reason why a head is refused. Nothing after it can be read, so the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The method is invalid.
    #[error("invalid HTTP method parsed")]
    Method,
    /// The target is not a URI.
    #[error("invalid URI")]
    Target,
    /// The version is neither HTTP/1.1 nor HTTP/1.0.
    #[error("invalid HTTP version parsed")]
    Version,
    /// The client sends the preface of HTTP/2.
    #[error("invalid HTTP version parsed (found HTTP2 preface)")]
    Http2,
    /// A line is not a header, or has bytes that no header may have.
    #[error("invalid HTTP header parsed")]
    Header,
    /// A line ends with a line feed alone, which others may not accept as an end.
    #[error("invalid line end parsed")]
    LineEnd,
    /// HTTP/1.1 requires exactly one header with a valid host.
    #[error("invalid host parsed")]
    Host,
    /// The length is not a number, or two lengths differ.
    #[error("invalid content-length parsed")]
    ContentLength,
    /// The body does not end with its last chunk, or is chunked twice.
    #[error("invalid transfer-encoding parsed")]
    TransferEncoding,
    /// The chunks contain a coding that is not supported.
    #[error("unknown transfer-encoding parsed")]
    UnknownCoding,
    /// HTTP/1.0 has no chunks.
    #[error("unexpected transfer-encoding parsed")]
    UnexpectedTransferEncoding,
    /// The head is too long, has too many headers, or a length that no body has.
    #[error("message head is too large")]
    TooLarge,
}

impl HeadError {
    /// Returns the status of the answer; `None` if the client would not understand any answer.
    pub fn status(self) -> Option<StatusCode> {
        match self {
            Self::Http2 => None,
            Self::UnknownCoding => Some(StatusCode::NOT_IMPLEMENTED),
            Self::TooLarge => Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            _ => Some(StatusCode::BAD_REQUEST),
        }
    }
}

impl From<httparse::Error> for HeadError {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::TooManyHeaders => Self::TooLarge,
            httparse::Error::Version => Self::Version,
            _ => Self::Header,
        }
    }
}

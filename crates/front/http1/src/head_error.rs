//! Heads of requests that are not taken.

use http::StatusCode;

/// Why a head is not taken. Nothing behind it can be read: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// What stands where the method is to be.
    #[error("invalid HTTP method parsed")]
    Method,
    /// What is asked for is no URI.
    #[error("invalid URI")]
    Target,
    /// Neither HTTP/1.1 nor HTTP/1.0.
    #[error("invalid HTTP version parsed")]
    Version,
    /// The client begins to speak HTTP/2.
    #[error("invalid HTTP version parsed (found HTTP2 preface)")]
    Http2,
    /// A line that is no header, or has bytes that none may have.
    #[error("invalid HTTP header parsed")]
    Header,
    /// A line that ends with a line feed alone, which others may not take for an end.
    #[error("invalid line end parsed")]
    LineEnd,
    /// HTTP/1.1 wants one header that names the host, and no other form of it.
    #[error("invalid host parsed")]
    Host,
    /// A length that is no number, or two that differ.
    #[error("invalid content-length parsed")]
    ContentLength,
    /// The body does not end with its last chunk, or is in chunks twice.
    #[error("invalid transfer-encoding parsed")]
    TransferEncoding,
    /// The chunks hold what is encoded in a way that is not known here.
    #[error("unknown transfer-encoding parsed")]
    UnknownCoding,
    /// Before HTTP/1.1 there were no chunks.
    #[error("unexpected transfer-encoding parsed")]
    UnexpectedTransferEncoding,
    /// Too long, or too many headers, or a length that no body has.
    #[error("message head is too large")]
    TooLarge,
}

impl HeadError {
    /// The status that it is answered with. `None`: the client would not understand any answer.
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

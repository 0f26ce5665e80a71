//! A piece of the content of a response.

use bytes::Bytes;
use http::HeaderMap;

pub(crate) enum Piece {
    Data(Bytes),
    /// The last piece: the status, as trailers.
    Status(HeaderMap),
    /// The end without a status.
    Broken,
}

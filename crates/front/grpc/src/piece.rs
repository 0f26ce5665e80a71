//! What the content of a response is sent in.

use bytes::Bytes;
use http::HeaderMap;

pub(crate) enum Piece {
    Data(Bytes),
    /// The last one: the status, as trailers.
    Status(HeaderMap),
    /// There is no more, and no status.
    Broken,
}

//! HTTP/1 without sockets: the heads of requests and responses, and the framing of bodies (RFC 9112).
//!
//! A head is read into memory that the next one reuses, and written after the bytes that wait to be sent. A request and
//! its response need no allocation here.
//!
//! **Invariants.** The result does not depend on how the network splits the bytes. Only this crate decides which bytes
//! belong to which request. A request that states it in two ways is refused, or is the last of its connection.

#![warn(missing_docs)]

mod body_decoder;
mod head_error;
mod request_head;
mod request_target;
mod response_head;
#[cfg(test)]
mod tests;

pub use body_decoder::{BodyDecoder, BodyFault, Step};
pub use head_error::HeadError;
pub use request_head::{Framing, MAX_HEAD, MAX_HEADERS, RequestHead, Version, visible_text};
pub use response_head::{
    Encoding, Header, HeaderValue, LAST_CHUNK, ResponseHead, names, write_chunk_size,
};

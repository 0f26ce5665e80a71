//! What comes back on a stream.

use std::time::Instant;

use crate::OutputTensor;

/// One response of a stream. Several may answer one request, and those of different requests may be mixed.
#[derive(Clone, Debug)]
pub struct StreamReply {
    /// When its last byte had been received.
    pub at: Instant,
    /// Of the request it answers; `None` if that had none, or with errors of some servers.
    pub id: Option<u64>,
    /// The server's text, if the request failed. The stream goes on.
    pub error: Option<String>,
    /// The last for its request.
    pub is_final: bool,
    /// It has no outputs, as the response has that only marks the end.
    pub is_empty: bool,
    /// Empty with [`Keep::Nothing`].
    pub outputs: Vec<OutputTensor>,
}

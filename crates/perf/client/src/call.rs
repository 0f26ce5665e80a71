//! Responses of calls and of streams.

use std::time::Instant;

use crate::OutputTensor;

/// How much of a response is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepResponse {
    /// Only whether the request succeeded.
    #[default]
    Nothing,
    /// Every output, with its data.
    Outputs,
}

/// The response to a request that succeeded.
#[derive(Clone, Debug)]
pub struct Reply {
    /// When the steps of the call took place.
    pub times: CallTimes,
    /// Empty with [`KeepResponse::Nothing`].
    pub outputs: Vec<OutputTensor>,
}

/// When the steps of a call took place, in this order.
///
/// Over HTTP `sent` is when the kernel had taken the last byte and `first_byte` when it gave the first; over gRPC,
/// whose connection is shared, `sent` is when the message had been handed to the connection and `first_byte` when
/// the response's headers had come from it. Opening a connection again, where that was needed, falls between `start`
/// and `sent`.
#[derive(Clone, Copy, Debug)]
pub struct CallTimes {
    /// Before the request was encoded and sent.
    pub start: Instant,
    /// After the last byte of the request.
    pub sent: Instant,
    /// With the first byte of the response.
    pub first_byte: Instant,
    /// After the last byte of the response.
    pub end: Instant,
}

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
    /// Empty with [`KeepResponse::Nothing`].
    pub outputs: Vec<OutputTensor>,
}

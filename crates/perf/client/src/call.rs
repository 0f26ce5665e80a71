//! Responses of calls and of streams.

use std::time::Instant;

use crate::OutputTensor;

/// The parts of a response that are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepResponse {
    /// Only the success or failure of the request.
    #[default]
    Nothing,
    /// Every output, with its data.
    Outputs,
}

/// The response to a request that succeeded.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Times of the steps of the call.
    pub times: CallTimes,
    /// The outputs; empty with [`KeepResponse::Nothing`].
    pub outputs: Vec<OutputTensor>,
}

/// Times of the steps of a call, in this order.
///
/// Over HTTP `sent` is when the kernel had taken the last byte and `first_byte` when it gave the first; over gRPC,
/// whose connection is shared, `sent` is when the message had been handed to the connection and `first_byte` when
/// the response's headers had come from it. Opening a connection again, where that was needed, falls between `start`
/// and `sent`.
#[derive(Clone, Copy, Debug)]
pub struct CallTimes {
    /// Time before the request was encoded and sent.
    pub start: Instant,
    /// Time after the last byte of the request.
    pub sent: Instant,
    /// Time of the first byte of the response.
    pub first_byte: Instant,
    /// Time after the last byte of the response.
    pub end: Instant,
}

/// One response of a stream. Several may answer one request, and those of different requests may be mixed.
#[derive(Clone, Debug)]
pub struct StreamReply {
    /// Time at which its last byte had been received.
    pub at: Instant,
    /// The id of its request; `None` if that had none, or with errors of some servers.
    pub id: Option<u64>,
    /// The server's text, if the request failed. The stream continues.
    pub error: Option<String>,
    /// It is the last response to its request.
    pub is_final: bool,
    /// It has no outputs, as a response that only marks the end.
    pub is_empty: bool,
    /// The outputs; empty with [`KeepResponse::Nothing`].
    pub outputs: Vec<OutputTensor>,
}

//! The options of the gRPC front end.

use std::{num::NonZero, thread, time::Duration};

/// How the gRPC front end behaves.
#[derive(Clone, Debug)]
pub struct GrpcOptions {
    /// Longest message taken or sent, in bytes.
    pub max_message_size: usize,
    /// Threads that serve connections. One keeps up with some ten thousand small requests a second.
    pub thread_count: usize,
    /// A connection without traffic is probed after this long ...
    pub keepalive_time: Duration,
    /// ... and closed when the probe is not answered within this.
    pub keepalive_timeout: Duration,
}

impl Default for GrpcOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            max_message_size: MAX_MESSAGE_SIZE,
            // Triton takes two by default; more cores than that are for the models.
            thread_count: cores.min(2),
            keepalive_time: Duration::from_millis(7_200_000),
            keepalive_timeout: Duration::from_millis(20_000),
        }
    }
}

/// The longest message gRPC implementations agree on: the length is a signed 32-bit number in most.
const MAX_MESSAGE_SIZE: usize = i32::MAX as usize;

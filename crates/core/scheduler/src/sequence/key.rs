//! What a scheduler of sequences must know of a request.

use std::time::Instant;

use galatea_types::CorrelationId;

use crate::queue::Queued;

/// A request of a sequence.
pub(crate) trait SequenceRequest: Queued {
    /// What the sequence keeps from one execution to the next.
    type States: Default;

    /// Bytes that are counted for what a sequence keeps.
    fn state_bytes(states: &Self::States) -> usize;

    /// Its sequence, as the client names it.
    fn correlation_id(&self) -> &CorrelationId;
    /// It is the first request of its sequence.
    fn is_start(&self) -> bool;
    /// It is the last one.
    fn is_end(&self) -> bool;
    /// It was made the first request of a sequence that only the server knows by this number.
    fn begin_own_sequence(&mut self, number: u64);
    /// It goes on with its sequence, after an execution that left it unfinished.
    fn continue_sequence(&mut self, now: Instant);
}

/// Who may add requests to a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The client of this identity; `None` where the server knows none.
    Client(Option<u64>),
    /// The server, which named it itself: it has no more requests.
    Server,
}

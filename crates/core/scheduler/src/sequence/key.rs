//! The properties of a request that a scheduler of sequences uses.

use std::time::Instant;

use galatea_types::CorrelationId;

use crate::queue::QueueEntry;

/// A request of a sequence.
pub(crate) trait SequenceRequest: QueueEntry {
    /// The states that the sequence keeps between executions.
    type States: Default;

    /// Returns the bytes counted for the states of a sequence.
    fn state_bytes(states: &Self::States) -> usize;

    /// Returns the client's name for its sequence.
    fn correlation_id(&self) -> &CorrelationId;
    /// Returns true for the first request of a sequence.
    fn is_start(&self) -> bool;
    /// Returns true for the last request of a sequence.
    fn is_end(&self) -> bool;
    /// Makes it the first request of a new sequence with this number, which only the server knows.
    fn begin_own_sequence(&mut self, number: u64);
    /// Continues its sequence after an execution that left it unfinished.
    fn continue_sequence(&mut self, now: Instant);
}

/// The party that may add requests to a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The client with this identity; `None` if the server knows none.
    Client(Option<u64>),
    /// The server, which named the sequence itself and adds no more requests.
    Server,
}

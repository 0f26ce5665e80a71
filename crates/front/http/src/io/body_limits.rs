//! How much of a body is read at once, and of one that nobody wants.

/// After so many bytes of one body the other connections of the thread have their turn, also those that only now become
/// ready. Reading them takes a fraction of a millisecond; tokio looks for other connections that have become ready only
/// after many such turns.
pub(crate) const TURN: usize = 256 << 10;

/// Most bytes read of a body that is refused, so that a client that sends all before it reads gets its answer.
pub(crate) const DISCARDED: usize = 256 << 20;
/// The work for a piece of such a body is that for so many bytes: a body of one-byte chunks ends after a million.
pub(crate) const LEAST_DISCARDED: usize = 256;

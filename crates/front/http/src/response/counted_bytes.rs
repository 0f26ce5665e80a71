//! The memory of bytes that are sent to a client.

use std::sync::Arc;

use bytes::Bytes;
use galatea_types::{MemoryBudget, MemoryReservation};

/// A shorter piece of a response does not count to the budget: the number of connections bounds them.
const UNCOUNTED: usize = 4 << 10;

/// Bytes for a client that count to the budget until they are written.
struct CountedBytes {
    bytes: Bytes,
    _memory: MemoryReservation,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns the same bytes, counted to the budget until the last clone is dropped.
pub(crate) fn counted(bytes: Bytes, budget: &Arc<MemoryBudget>) -> Bytes {
    if bytes.len() <= UNCOUNTED {
        return bytes;
    }
    let mut memory = budget.reservation();
    memory.grow(bytes.len());
    Bytes::from_owner(CountedBytes { bytes, _memory: memory })
}

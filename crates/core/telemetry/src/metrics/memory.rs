//! The use of the memory budget by requests and responses. Triton has no such families.

use galatea_types::MemoryBudget;

use super::text::Text;
use crate::families::{
    MEMORY_LIMIT, MEMORY_REFUSED, MEMORY_USED, SEQUENCES_GAVE_WAY, STATES_LIMIT, STATES_REFUSED,
    STATES_USED,
};

/// State of the memory budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryMetrics {
    /// `--memory-budget`, in bytes.
    pub limit_bytes: usize,
    /// Bytes in use.
    pub used_bytes: usize,
    /// Number of times that bytes were refused.
    pub refused: usize,
    /// The share of the states of sequences.
    pub sequences: SequenceMemoryMetrics,
}

/// The part of the memory budget that states of sequences take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceMemoryMetrics {
    /// Bytes that the states may take.
    pub limit_bytes: usize,
    /// Bytes that the states take.
    pub used_bytes: usize,
    /// Sequences that were ended because the states of others needed the memory.
    pub gave_way: usize,
    /// Requests that failed because there was no memory for their state.
    pub refused: usize,
}

impl MemoryMetrics {
    /// Reads the state of `budget`.
    pub fn new(budget: &MemoryBudget, sequences: SequenceMemoryMetrics) -> Self {
        let (limit_bytes, used_bytes) = (budget.limit(), budget.used());
        Self { limit_bytes, used_bytes, refused: budget.refused(), sequences }
    }
}

pub(super) fn write(text: &mut Text, memory: MemoryMetrics) {
    text.single(&MEMORY_LIMIT, memory.limit_bytes);
    text.single(&MEMORY_USED, memory.used_bytes);
    text.single(&MEMORY_REFUSED, memory.refused);
    text.single(&STATES_LIMIT, memory.sequences.limit_bytes);
    text.single(&STATES_USED, memory.sequences.used_bytes);
    text.single(&STATES_REFUSED, memory.sequences.refused);
    text.single(&SEQUENCES_GAVE_WAY, memory.sequences.gave_way);
}

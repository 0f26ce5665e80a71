//! What the requests and responses in the server take of their memory budget. Triton has no such families.

use galatea_types::MemoryBudget;

use super::{
    families::{MEMORY_LIMIT, MEMORY_REFUSED, MEMORY_USED},
    text::Text,
};

/// State of the memory budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryMetrics {
    /// `--memory-budget`, in bytes.
    pub limit_bytes: usize,
    /// Bytes in use.
    pub used_bytes: usize,
    /// How often bytes were refused.
    pub refused: usize,
}

impl From<&MemoryBudget> for MemoryMetrics {
    fn from(budget: &MemoryBudget) -> Self {
        Self { limit_bytes: budget.limit(), used_bytes: budget.used(), refused: budget.refused() }
    }
}

pub(super) fn write(text: &mut Text, memory: MemoryMetrics) {
    text.single(&MEMORY_LIMIT, memory.limit_bytes);
    text.single(&MEMORY_USED, memory.used_bytes);
    text.single(&MEMORY_REFUSED, memory.refused);
}

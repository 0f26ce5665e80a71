//! What the requests and responses in the server take of their memory budget. Triton has no such families.

use galatea_types::MemoryBudget;

use super::{Gauge, text::Kind, text::Text, write_gauge};

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

const LIMIT: Gauge = (
    "galatea_memory_budget_limit_bytes",
    "Memory that requests and responses may take in all, in bytes",
);
const USED: Gauge =
    ("galatea_memory_budget_used_bytes", "Memory that requests and responses take, in bytes");
const REFUSED: Gauge = (
    "galatea_memory_budget_refused_total",
    "How often a request was refused because the memory budget was used up",
);

pub(super) fn write(text: &mut Text, memory: MemoryMetrics) {
    write_gauge(text, LIMIT, memory.limit_bytes);
    write_gauge(text, USED, memory.used_bytes);
    text.family(REFUSED.0, REFUSED.1, Kind::Counter);
    text.sample(REFUSED.0, "", memory.refused);
}

pub(super) fn is_family(name: &str) -> bool {
    [LIMIT, USED, REFUSED].iter().any(|(family, _)| *family == name)
}

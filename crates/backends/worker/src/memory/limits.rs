//! How large an arena may be, and what its content counts to.

use std::sync::Arc;

use galatea_types::MemoryBudget;

/// Bounds of an arena, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ArenaLimits {
    /// At first.
    pub initial: usize,
    /// An arena that is too small grows by at least this much.
    pub growth: usize,
    /// `None`: no limit.
    pub max: Option<usize>,
}

/// What holds for both arenas of a worker.
#[derive(Clone, Debug)]
pub struct MemoryRules {
    /// Of each arena.
    pub arenas: ArenaLimits,
    /// What a worker sends counts to it, for as long as the server holds it.
    pub budget: Arc<MemoryBudget>,
}

impl MemoryRules {
    /// Without a budget.
    pub fn of(arenas: ArenaLimits) -> Self {
        Self { arenas, budget: MemoryBudget::unlimited() }
    }

    /// With a budget: without a bound of its own an arena may have half of that, so that what lies there and its copy in the
    /// server are no more than the budget together.
    pub fn within(arenas: ArenaLimits, budget: &Arc<MemoryBudget>) -> Self {
        let half = (budget.limit() / 2).max(arenas.initial);
        let max = Some(arenas.max.unwrap_or(half)).filter(|_| budget.limit() < usize::MAX);
        Self { arenas: ArenaLimits { max: max.or(arenas.max), ..arenas }, budget: budget.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_bounded_by_its_setting_or_by_the_budget() {
        let max = |max, budget| {
            let arenas = ArenaLimits { initial: 100, growth: 1, max };
            MemoryRules::within(arenas, &MemoryBudget::new(budget)).arenas.max
        };
        assert_eq!(max(None, 1000), Some(500));
        assert_eq!(max(None, 50), Some(100));
        assert_eq!(max(Some(2000), 1000), Some(2000));
        assert_eq!(max(Some(2000), usize::MAX), Some(2000));
        assert_eq!(max(None, usize::MAX), None);
    }
}

//! Size limits of arenas, and the budget that their content counts to.

use std::sync::Arc;

use galatea_types::MemoryBudget;

/// Bounds of an arena, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ArenaLimits {
    /// Size at the start.
    pub initial: usize,
    /// An arena that is too small grows by at least this much.
    pub growth: usize,
    /// Largest size. `None`: no limit.
    pub max: Option<usize>,
}

/// Rules for both arenas of a worker.
#[derive(Clone, Debug)]
pub struct MemoryRules {
    /// Bounds of each arena.
    pub arenas: ArenaLimits,
    /// Budget that data from a worker counts to, for as long as the server holds it.
    pub budget: Arc<MemoryBudget>,
}

impl MemoryRules {
    /// Builds rules without a budget.
    pub fn of(arenas: ArenaLimits) -> Self {
        Self { arenas, budget: MemoryBudget::unlimited() }
    }

    /// Builds rules with a budget. An arena without a bound of its own may have half of the budget, so that its content and
    /// the server's copy fit the budget together.
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
    fn the_arena_is_limited_by_its_setting_or_the_memory_budget() {
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

//! The memory that all requests of clients may use, from the flag and the machine's memory. It also decides when freed memory
//! goes back to the system.

mod code_release;
mod size;
mod trimming;

use std::sync::Arc;

use galatea_types::MemoryBudget;

pub use self::{code_release::CodeRelease, size::MemorySize, trimming::Trimming};

/// Assumed memory, if the system does not report it.
const ASSUMED: usize = 4 << 30;

/// Divisor of the budget: this part of it may stay allocated after long requests have freed it.
const KEPT: usize = 4;

/// The rule of `--memory-budget`: a share is one of the memory that the server and its models leave.
#[derive(Clone, Copy, Debug)]
pub struct BudgetRule {
    size: MemorySize,
    /// Bytes that the machine and its control groups allow.
    available: usize,
}

impl BudgetRule {
    /// Makes the rule for this machine.
    pub fn new(size: MemorySize) -> Self {
        let available = galatea_process_memory::available().unwrap_or_else(|| {
            log::warn!("cannot read how much memory this machine has, assuming {}", mib(ASSUMED));
            ASSUMED
        });
        Self { size, available }
    }

    /// Returns the budget before models are loaded.
    pub fn budget(&self) -> Arc<MemoryBudget> {
        MemoryBudget::new(self.size.of(self.available))
    }

    /// Sets the limit once the models are loaded.
    pub fn begin(&self, own: usize, budget: &MemoryBudget) {
        self.set(self.size.of(self.available.saturating_sub(own)), budget);
        self.log(own, budget);
    }

    /// Sets the limit when the server itself holds `own` bytes, and logs it. A change of a sixteenth or less is ignored.
    pub fn apply(&self, own: usize, budget: &MemoryBudget) {
        let (before, limit) = (budget.limit(), self.size.of(self.available.saturating_sub(own)));
        if before.abs_diff(limit) > before / 16 {
            self.set(limit, budget);
            self.log(own, budget);
        }
    }

    /// Sets the limit. The budget does not count memory that requests have freed, so the amount that is kept is bounded too.
    fn set(&self, limit: usize, budget: &MemoryBudget) {
        budget.set_limit(limit);
        if !galatea_process_memory::keep_of_long_blocks(limit / KEPT) {
            log::warn!("the system gets memory of long requests back some seconds late");
        }
    }

    fn log(&self, own: usize, budget: &MemoryBudget) {
        log::info!(
            "Memory budget of requests and responses: {} (--memory-budget); the server, its models and its response cache take {} of the {} \
             that the machine and its control groups allow",
            mib(budget.limit()),
            mib(own),
            mib(self.available)
        );
    }
}

fn mib(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_relative_to_the_memory_left_by_models() {
        const MIB: usize = 1 << 20;
        let rule = BudgetRule { size: MemorySize::Percent(50), available: 400 * MIB };
        let budget = rule.budget();
        assert_eq!(budget.limit() / MIB, 200);
        rule.apply(240 * MIB, &budget);
        assert_eq!(budget.limit() / MIB, 79);
        rule.apply(241 * MIB, &budget);
        assert_eq!(budget.limit() / MIB, 79, "about the same");
        rule.apply(100 * MIB, &budget);
        assert_eq!(budget.limit() / MIB, 150);

        let rule = BudgetRule { size: MemorySize::Bytes(300 * MIB), ..rule };
        let budget = rule.budget();
        rule.apply(399 * MIB, &budget);
        assert_eq!(budget.limit(), 300 * MIB);
    }
}

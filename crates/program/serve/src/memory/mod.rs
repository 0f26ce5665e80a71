//! How much memory clients' requests may take in all: what the flag says, of what the machine has; and when what
//! they took goes back to the system.

mod code_release;
mod size;
mod trimming;

use std::sync::Arc;

use galatea_types::MemoryBudget;

pub use self::{code_release::CodeRelease, size::MemorySize, trimming::Trimming};

/// Where the system does not say how much memory there is.
const ASSUMED: usize = 4 << 30;

/// Of the budget so many parts, one, may be kept of what long requests have freed.
const KEPT: usize = 4;

/// What `--memory-budget` means at a time: a share is one of what the server and its models leave.
#[derive(Clone, Copy, Debug)]
pub struct BudgetRule {
    size: MemorySize,
    /// What the machine and its control groups allow.
    available: usize,
}

impl BudgetRule {
    /// On this machine.
    pub fn new(size: MemorySize) -> Self {
        let available = galatea_process_memory::available().unwrap_or_else(|| {
            log::warn!("how much memory there is cannot be read; {} are assumed", mib(ASSUMED));
            ASSUMED
        });
        Self { size, available }
    }

    /// The budget before models are loaded.
    pub fn budget(&self) -> Arc<MemoryBudget> {
        MemoryBudget::new(self.size.of(self.available))
    }

    /// Sets the limit when the models have been loaded.
    pub fn begin(&self, own: usize, budget: &MemoryBudget) {
        self.set(self.size.of(self.available.saturating_sub(own)), budget);
        self.log(own, budget);
    }

    /// Sets the limit where the server itself holds `own` bytes; says so unless it is about the same.
    pub fn apply(&self, own: usize, budget: &MemoryBudget) {
        let (before, limit) = (budget.limit(), self.size.of(self.available.saturating_sub(own)));
        if before.abs_diff(limit) > before / 16 {
            self.set(limit, budget);
            self.log(own, budget);
        }
    }

    /// The budget does not count what requests have freed, so no more of that may stay than there is room for beside it.
    fn set(&self, limit: usize, budget: &MemoryBudget) {
        budget.set_limit(limit);
        if !galatea_process_memory::keep_of_long_blocks(limit / KEPT) {
            log::warn!("memory of long requests goes back to the system some seconds late");
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
    fn a_share_is_of_what_the_models_leave() {
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

//! When the allocator gives back what it keeps: after a burst, when the server is quiet again.

use galatea_types::MemoryBudget;

/// Growth that is worth a trim.
const WORTH: usize = 8 << 20;
/// Growth since the last look up to which the process counts as not growing.
const STEADY: usize = 1 << 20;
/// Of the budget: more than that in use is a burst that is not over.
const QUIET_SHARE: usize = 32;

/// Decides, looked at now and then. What the process has come to after a trim is what it needs; it is trimmed again
/// when it has grown beyond that, so a quiet server is trimmed once and not again and again.
#[derive(Debug, Default)]
pub struct Trimming {
    /// Bytes after the last trim, or the fewest since.
    needed: usize,
    /// Bytes at the last look.
    last: usize,
}

impl Trimming {
    /// Trims what the start has left. Returns what the process needs.
    pub fn begin(&mut self) -> usize {
        galatea_process_memory::trim();
        self.trimmed(galatea_process_memory::resident().unwrap_or_default());
        self.needed
    }

    /// Trims where it is worth it and disturbs nobody. Returns what the process needs beside requests and responses,
    /// where that can be told now.
    pub fn look(&mut self, budget: &MemoryBudget) -> Option<usize> {
        let resident = galatea_process_memory::resident()?;
        if self.is_due(resident, budget) {
            galatea_process_memory::trim();
            self.trimmed(galatea_process_memory::resident()?);
        }
        is_quiet(budget).then_some(self.needed)
    }

    fn is_due(&mut self, resident: usize, budget: &MemoryBudget) -> bool {
        let is_growing = resident > self.last.saturating_add(STEADY);
        self.last = resident;
        self.needed = self.needed.min(resident);
        !is_growing && is_quiet(budget) && resident >= self.needed.saturating_add(WORTH)
    }

    fn trimmed(&mut self, resident: usize) {
        log::debug!("gave memory back to the system: {} MiB are in use", resident >> 20);
        (self.needed, self.last) = (resident, resident);
    }
}

fn is_quiet(budget: &MemoryBudget) -> bool {
    budget.used() <= budget.limit() / QUIET_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_burst_is_followed_by_one_trim() {
        let budget = MemoryBudget::new(320 * MIB);
        let mut trimming = Trimming::default();
        let due = |trimming: &mut Trimming, mib| trimming.is_due(mib * MIB, &budget);
        assert!(!due(&mut trimming, 60), "it has just grown");
        assert!(due(&mut trimming, 60), "what the start left");
        trimming.trimmed(40 * MIB);
        assert!(!due(&mut trimming, 41));

        let mut burst = budget.reservation();
        burst.grow(100 * MIB);
        assert!(!due(&mut trimming, 200));
        assert!(!due(&mut trimming, 200), "the burst is not over");
        drop(burst);
        assert!(due(&mut trimming, 200));
        trimming.trimmed(90 * MIB);
        assert!((0..100).all(|_| !due(&mut trimming, 90)), "that is what it needs");
        assert!(!due(&mut trimming, 50) && !due(&mut trimming, 90) && due(&mut trimming, 90));
    }
}

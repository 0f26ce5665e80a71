//! Decides when the allocator returns free memory: after a burst, when the server is quiet again.

use galatea_types::MemoryBudget;

/// Bytes that make a trim worthwhile.
const WORTH: usize = 8 << 20;
/// Growth since the last look up to which the process counts as not growing.
const STEADY: usize = 1 << 20;
/// With more bytes than this in use by requests, responses and connections, a burst is not over ...
const QUIET: usize = 4 << 20;
/// ... unless the budget is this many times as large: idle connections are not a burst.
const QUIET_SHARE: usize = 64;

/// Decides at intervals. While the process is larger than needed, it trims whenever enough was freed since the last trim. A
/// quiet server is trimmed only once.
#[derive(Debug, Default)]
pub struct Trimming {
    /// Bytes in use after the last trim, or the fewest since.
    needed: usize,
    /// The fewest bytes after any trim: a process of that size has nothing to return.
    least: usize,
    /// Bytes in use at the last look.
    last: usize,
    /// Free bytes in the allocator after the last trim, or the fewest since.
    free: u32,
}

impl Trimming {
    /// Trims the memory that the start has freed. Returns the bytes that the process needs.
    pub fn begin(&mut self) -> usize {
        self.least = usize::MAX;
        self.trim();
        self.needed
    }

    /// Compares with the present size from now on: the process has shrunk by other means than a trim.
    pub fn rebase(&mut self) {
        let resident = galatea_process_memory::resident().unwrap_or_default();
        self.trimmed(resident, self.free);
    }

    /// Trims if it is worthwhile and disturbs nobody. Returns the bytes that the process needs besides requests and responses, if
    /// that is known now.
    pub fn look(&mut self, budget: &MemoryBudget) -> Option<usize> {
        let resident = galatea_process_memory::resident()?;
        let is_quiet = budget.used() <= QUIET.max(budget.limit() / QUIET_SHARE);
        if self.may_trim(resident, is_quiet)
            && self.is_worth_it(resident, galatea_process_memory::free())
        {
            self.trim();
        }
        is_quiet.then_some(self.needed)
    }

    fn may_trim(&mut self, resident: usize, is_quiet: bool) -> bool {
        let is_growing = resident > self.last.saturating_add(STEADY);
        self.last = resident;
        self.needed = self.needed.min(resident);
        !is_growing && is_quiet && resident >= self.least.saturating_add(WORTH)
    }

    /// Returns true if the process has grown since the last trim, or the allocator has more free. One sign alone can miss memory:
    /// a burst between two looks leaves as much free as before it, and connections free memory without growth.
    fn is_worth_it(&mut self, resident: usize, free: u32) -> bool {
        let has_grown = resident >= self.needed.saturating_add(WORTH);
        self.has_freed_enough(free) || has_grown
    }

    fn has_freed_enough(&mut self, free: u32) -> bool {
        let freed = free.wrapping_sub(self.free).cast_signed();
        if freed < 0 {
            self.free = free;
        }
        freed >= WORTH as i32
    }

    fn trim(&mut self) {
        galatea_process_memory::trim();
        let resident = galatea_process_memory::resident().unwrap_or_default();
        self.trimmed(resident, galatea_process_memory::free());
        log::debug!("gave memory back to the system: {} MiB are in use", resident >> 20);
    }

    fn trimmed(&mut self, resident: usize, free: u32) {
        (self.needed, self.last, self.free) = (resident, resident, free);
        self.least = self.least.min(resident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Looks at a process of so many MiB, of which the allocator has some free; in use by requests or not.
    fn is_due(trimming: &mut Trimming, resident: usize, free: u32, used: usize) -> bool {
        trimming.may_trim(resident * MIB, used == 0)
            && trimming.is_worth_it(resident * MIB, free * MIB as u32)
    }

    fn begun() -> Trimming {
        let mut trimming = Trimming { least: usize::MAX, ..Trimming::default() };
        trimming.trimmed(40 * MIB, 10 * MIB as u32);
        trimming
    }

    #[test]
    fn a_burst_is_followed_by_one_trim() {
        let mut trimming = begun();
        assert!(!is_due(&mut trimming, 41, 10, 0));
        assert!(!is_due(&mut trimming, 200, 2, 100), "it grows");
        assert!(!is_due(&mut trimming, 200, 60, 100), "the burst is not over");
        assert!(is_due(&mut trimming, 200, 140, 0));
        trimming.trimmed(60 * MIB, 140 * MIB as u32);
        assert!((0..100).all(|_| !is_due(&mut trimming, 60, 141, 0)), "that is what it needs");
    }

    #[test]
    fn a_burst_between_two_polls_is_followed_by_a_trim() {
        let mut trimming = begun();
        trimming.trimmed(40 * MIB, 200 * MIB as u32);
        assert!(!is_due(&mut trimming, 150, 200, 0), "it grows");
        assert!(is_due(&mut trimming, 150, 200, 0));
    }

    #[test]
    fn memory_freed_long_after_a_burst_is_trimmed_too() {
        let mut trimming = begun();
        assert!(!is_due(&mut trimming, 150, 4, 0), "it grows");
        assert!(is_due(&mut trimming, 150, 4, 0), "it has grown");
        trimming.trimmed(150 * MIB, 4 * MIB as u32);
        assert!((0..100).all(|_| !is_due(&mut trimming, 150, 4, 0)), "connections hold it");
        assert!(is_due(&mut trimming, 150, 110, 0), "they have ended");
    }
}

//! Decides when code that was needed once is removed from memory.

/// Decides at intervals: due once libraries were opened, and none since the last look.
#[derive(Debug, Default)]
pub struct CodeRelease {
    /// Number of opened libraries at the last release, and at the last look.
    released: u64,
    last: u64,
}

impl CodeRelease {
    /// Releases the code that the start needed.
    pub fn begin(&mut self) {
        self.last = galatea_process_memory::opened_libraries();
        self.released = self.last;
        release();
    }

    /// Releases the code that opening libraries needed. Returns true if it was released now.
    pub fn look(&mut self) -> bool {
        let is_due = self.is_due(galatea_process_memory::opened_libraries());
        if is_due {
            release();
        }
        is_due
    }

    fn is_due(&mut self, opened: u64) -> bool {
        let is_settled = std::mem::replace(&mut self.last, opened) == opened;
        let is_due = is_settled && opened != self.released;
        if is_due {
            self.released = opened;
        }
        is_due
    }
}

fn release() {
    galatea_process_memory::release_code();
    let resident = galatea_process_memory::resident().unwrap_or_default();
    log::debug!("freed code that is no longer used: {} MiB are in use", resident >> 20);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_released_once_after_the_last_library_is_opened() {
        let mut release = CodeRelease { released: 10, last: 10 };
        let due: Vec<bool> =
            [10, 12, 15, 15, 15, 16, 16].map(|opened| release.is_due(opened)).to_vec();
        assert_eq!(due, [false, false, false, true, false, false, true]);
    }
}

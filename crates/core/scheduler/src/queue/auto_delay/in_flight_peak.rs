//! Estimates how many items are in flight when every client has sent its request.

/// A number not reached again is forgotten after this many executions, or at most twice as many.
const WINDOW: u32 = 16;

/// The largest number of items in flight that was reached at least twice lately. A number reached once may be one too
/// many: an answer may come back as the next request before its instance has reported the end.
#[derive(Default)]
pub(super) struct InFlightPeak {
    now: TwoLargest,
    before: TwoLargest,
    executions: u32,
}

#[derive(Clone, Copy, Default)]
struct TwoLargest {
    first: u64,
    second: u64,
}

impl InFlightPeak {
    /// Records the number of items in flight, now that a request has arrived.
    pub fn note(&mut self, in_flight: u64) {
        let TwoLargest { first, second } = &mut self.now;
        if in_flight >= *first {
            (*first, *second) = (in_flight, *first);
        } else if in_flight > *second {
            *second = in_flight;
        }
    }

    /// Records the end of an execution.
    pub fn executed(&mut self) {
        self.executions += 1;
        if self.executions >= WINDOW {
            (self.before, self.now) = (self.now, TwoLargest::default());
            self.executions = 0;
        }
    }

    /// Returns the number of items in flight when every client has sent its request.
    pub fn size(&self) -> u64 {
        self.now.second.max(self.before.second)
    }

    /// Halves the number of missing items, because the expected ones did not come.
    pub fn disappointed(&mut self, in_flight: u64) {
        let size = in_flight + self.size().saturating_sub(in_flight) / 2;
        for top in [&mut self.now, &mut self.before] {
            top.first = top.first.min(size);
            top.second = top.second.min(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_peak_does_not_count() {
        let mut crowd = InFlightPeak::default();
        for _ in 0..4 * WINDOW {
            crowd.note(1);
            crowd.executed();
        }
        crowd.note(2);
        assert_eq!(crowd.size(), 1);
        crowd.note(16);
        assert_eq!(crowd.size(), 2);
        crowd.note(16);
        assert_eq!(crowd.size(), 16);
    }

    #[test]
    fn callers_that_left_are_forgotten() {
        let mut crowd = InFlightPeak::default();
        (0..2).for_each(|_| crowd.note(16));
        let mut executions = 0;
        while crowd.size() > 1 {
            crowd.note(1);
            crowd.executed();
            executions += 1;
        }
        assert!(executions <= 2 * WINDOW);

        (0..2).for_each(|_| crowd.note(16));
        let mut sizes = Vec::new();
        while crowd.size() > 1 {
            crowd.disappointed(1);
            sizes.push(crowd.size());
        }
        assert_eq!(sizes, [8, 4, 2, 1]);
    }
}

//! The number of requests that should wait in a worker, so that it does not sleep between them.

use std::time::Duration;

/// The usual time of an instance's executions. Recent ones weigh most.
#[derive(Debug, Default)]
pub(crate) struct ExecutionTimes {
    /// Moving average of the times. `None` before the first.
    usual: Option<Duration>,
}

/// Worker time that may wait in a worker. Waking it takes a tenth of that on a busy machine. A request stuck behind a long
/// one would have waited about this long behind usual ones too.
const WORTH: Duration = Duration::from_millis(2);

/// Most requests that wait, enough for the shortest executions: more gained nothing.
const MAX_WAITING: u128 = 8;

/// A single execution counts for this many usual ones at most. On a busy machine a process sometimes waits for a core, which
/// says nothing about the next request.
const MAX_OUTLIER: u32 = 8;

/// Shorter executions count as this long: the reply was there already.
const SHORTEST: Duration = Duration::from_micros(20);

impl ExecutionTimes {
    pub fn record(&mut self, execution: Duration) {
        let execution = execution.max(SHORTEST);
        self.usual = Some(match self.usual {
            Some(usual) => (usual * 3 + execution.min(usual * MAX_OUTLIER)) / 4,
            None => execution,
        });
    }

    /// Returns the number of requests that may wait in the worker: at least one.
    pub fn depth(&self) -> usize {
        let Some(usual) = self.usual else { return 1 };
        let fitting = WORTH.as_nanos() / usual.as_nanos().max(1);
        usize::try_from(fitting.clamp(1, MAX_WAITING)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth_after(executions: &[u64]) -> usize {
        let mut pace = ExecutionTimes::default();
        executions.iter().for_each(|&us| pace.record(Duration::from_micros(us)));
        pace.depth()
    }

    #[test]
    fn shorter_executions_allow_a_deeper_queue() {
        assert_eq!(depth_after(&[]), 1, "nothing is known");
        assert_eq!(depth_after(&[50]), 8);
        assert_eq!(depth_after(&[0, 0, 0]), 8);
        assert_eq!(depth_after(&[500]), 4);
        assert_eq!(depth_after(&[900]), 2);
        assert_eq!(depth_after(&[2000]), 1);
        assert_eq!(depth_after(&[600_000_000]), 1);
    }

    #[test]
    fn the_queue_depth_follows_changed_execution_times() {
        let slow_then_fast: Vec<u64> = [50_000].into_iter().chain([50; 16]).collect();
        assert_eq!(depth_after(&slow_then_fast[..2]), 1);
        assert!(depth_after(&slow_then_fast) > 1);
        assert_eq!(depth_after(&[50, 50, 50, 50_000]), 8, "one says little");
        assert_eq!(depth_after(&[50, 50, 50, 50_000, 50_000, 50_000, 50_000]), 1);
        assert_eq!(depth_after(&[0, 50_000, 50_000, 50_000, 50_000, 50_000]), 1);
    }
}

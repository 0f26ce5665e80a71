//! How many requests are worth waiting in a worker: those it needs so that it does not go to sleep between them.

use std::time::Duration;

/// How long the executions of an instance take, the last ones before all.
#[derive(Debug, Default)]
pub(crate) struct ExecutionTimes {
    /// `None` before the first.
    usual: Option<Duration>,
}

/// What waits in a worker is worth this much of its time. Waking it takes a tenth of that on a busy machine; a request that
/// waits in vain, behind a long one, waits this long before others would have been through as well.
const WORTH: Duration = Duration::from_millis(2);

/// Enough for the shortest ones: more gained nothing.
const MAX_WAITING: u128 = 8;

/// A single execution counts for this many usual ones at most: on a busy machine a process has to wait for a core now and
/// then, which says nothing about the next request.
const MAX_OUTLIER: u32 = 8;

/// Executions that are shorter count like this: the reply was there already.
const SHORTEST: Duration = Duration::from_micros(20);

impl ExecutionTimes {
    pub fn record(&mut self, execution: Duration) {
        let execution = execution.max(SHORTEST);
        self.usual = Some(match self.usual {
            Some(usual) => (usual * 3 + execution.min(usual * MAX_OUTLIER)) / 4,
            None => execution,
        });
    }

    /// How many requests may wait in the worker: at least one.
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
    fn the_shorter_the_executions_the_more_may_wait() {
        assert_eq!(depth_after(&[]), 1, "nothing is known");
        assert_eq!(depth_after(&[50]), 8);
        assert_eq!(depth_after(&[0, 0, 0]), 8);
        assert_eq!(depth_after(&[500]), 4);
        assert_eq!(depth_after(&[900]), 2);
        assert_eq!(depth_after(&[2000]), 1);
        assert_eq!(depth_after(&[600_000_000]), 1);
    }

    #[test]
    fn it_follows_a_change() {
        let slow_then_fast: Vec<u64> = [50_000].into_iter().chain([50; 16]).collect();
        assert_eq!(depth_after(&slow_then_fast[..2]), 1);
        assert!(depth_after(&slow_then_fast) > 1);
        assert_eq!(depth_after(&[50, 50, 50, 50_000]), 8, "one says little");
        assert_eq!(depth_after(&[50, 50, 50, 50_000, 50_000, 50_000, 50_000]), 1);
        assert_eq!(depth_after(&[0, 50_000, 50_000, 50_000, 50_000, 50_000]), 1);
    }
}

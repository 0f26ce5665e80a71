//! Decides if executions of a model are so short that the thread that brings a request may execute it itself.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Below this mean, an execution costs less than waking another thread for it.
const QUICK: Duration = Duration::from_micros(50);

/// Above this mean, executions are slow again. Between the two nothing changes.
const SLOW: Duration = Duration::from_micros(100);

/// The longest time counted for one execution. A thread that loses its processor for a moment must not make the model slow.
const MOST_COUNTED: Duration = Duration::from_millis(1);

/// An execution of this length delays everything else on its thread.
const TOO_LONG: Duration = Duration::from_millis(10);

/// After such an execution, nothing is executed in place for this many times its length. So clients cost a thread 1 % at most.
const PAUSE: u32 = 100;

/// A new execution has a weight of 1/8.
const WEIGHT: u64 = 8;

/// The mean execution time of a model. Instances update it concurrently: one may overwrite and so lose the update of
/// another, which does no other harm.
#[derive(Debug)]
pub(crate) struct ExecutionPace {
    epoch: Instant,
    /// In nanoseconds.
    mean: AtomicU64,
    is_quick: AtomicBool,
    /// The most bytes of inputs that were executed quickly.
    quick_bytes: AtomicUsize,
    /// In nanoseconds since the epoch.
    paused_until: AtomicU64,
}

impl ExecutionPace {
    /// Creates a pace that is slow until executions prove quick.
    pub fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            mean: AtomicU64::new(nanos(2 * SLOW)),
            is_quick: AtomicBool::new(false),
            quick_bytes: AtomicUsize::new(0),
            paused_until: AtomicU64::new(0),
        }
    }

    /// Records an execution with `bytes` bytes of inputs.
    pub fn note(&self, begun: Instant, end: Instant, bytes: usize) {
        let took = end.saturating_duration_since(begun);
        let mean = self.mean.load(Relaxed);
        let mean = mean - mean / WEIGHT + nanos(took.min(MOST_COUNTED)) / WEIGHT;
        self.mean.store(mean, Relaxed);
        if mean < nanos(QUICK) {
            set(&self.is_quick, true);
        } else if mean > nanos(SLOW) {
            set(&self.is_quick, false);
        }
        if took < SLOW {
            if bytes > self.quick_bytes.load(Relaxed) {
                self.quick_bytes.store(bytes, Relaxed);
            }
        } else if took >= TOO_LONG {
            let until = self.since_epoch(end).saturating_add(nanos(took.saturating_mul(PAUSE)));
            self.paused_until.fetch_max(until, Relaxed);
        }
    }

    /// Returns true if a request with this many bytes of inputs should execute quickly. More than twice the most bytes that
    /// were executed quickly may be slow.
    pub fn is_quick(&self, bytes: usize, now: Instant) -> bool {
        self.is_quick.load(Relaxed)
            && bytes / 2 <= self.quick_bytes.load(Relaxed)
            && self.since_epoch(now) >= self.paused_until.load(Relaxed)
    }

    fn since_epoch(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.epoch))
    }
}

/// Writes the flag only if it changes, because all threads read it.
fn set(flag: &AtomicBool, value: bool) {
    if flag.load(Relaxed) != value {
        flag.store(value, Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Has executions of this length one after the other, and returns how many it took until it is quick, or is not.
    fn until(pace: &ExecutionPace, is_quick: bool, took: Duration) -> usize {
        let at = pace.epoch + micros(1);
        (1..1000)
            .find(|_| {
                pace.note(at, at + took, 100);
                pace.is_quick(100, at + took) == is_quick
            })
            .expect("it changes")
    }

    #[test]
    fn a_model_becomes_quick_after_quick_executions_and_slow_after_slow_ones() {
        let pace = ExecutionPace::new(Instant::now());
        assert!(!pace.is_quick(0, pace.epoch));
        assert!((8..20).contains(&until(&pace, true, micros(10))));
        let at = pace.epoch;
        (0..1000).for_each(|_| pace.note(at, at + micros(90), 100));
        assert!(pace.is_quick(100, at), "it stays between both");
        assert!(until(&pace, false, micros(200)) < 10);
        (0..1000).for_each(|_| pace.note(at, at + micros(60), 100));
        assert!(!pace.is_quick(100, at), "it stays between both");
    }

    #[test]
    fn a_single_preemption_is_forgotten_after_a_few_executions() {
        let pace = ExecutionPace::new(Instant::now());
        until(&pace, true, micros(10));
        let at = pace.epoch;
        pace.note(at, at + Duration::from_millis(9), 100);
        assert!(until(&pace, true, micros(10)) < 12);
    }

    #[test]
    fn a_far_too_long_execution_suspends_in_place_execution() {
        let pace = ExecutionPace::new(Instant::now());
        let end = pace.epoch + Duration::from_secs(2);
        pace.note(pace.epoch, end, 100);
        (0..100).for_each(|_| pace.note(end, end + micros(10), 100));
        assert!(!pace.is_quick(100, end + Duration::from_secs(199)));
        assert!(pace.is_quick(100, end + Duration::from_secs(201)));
    }

    #[test]
    fn a_much_larger_request_is_not_expected_to_be_quick() {
        let pace = ExecutionPace::new(Instant::now());
        until(&pace, true, micros(10));
        assert!(pace.is_quick(201, pace.epoch + micros(1)));
        assert!(!pace.is_quick(202, pace.epoch + micros(1)));
    }
}

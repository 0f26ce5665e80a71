//! The times that a request, its steps included, spent in queues and computing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use galatea_types::{Cause, Observer, Timeline};

/// Adds up the times that a request and the steps of its ensemble spent in queues and computing.
#[derive(Debug, Default)]
pub(super) struct Times {
    has_queued: AtomicBool,
    queue_ns: AtomicU64,
    compute_ns: AtomicU64,
}

impl Times {
    /// Returns the time in queues and the time of the model; `None` if the request entered no queue.
    pub fn queue_and_compute(&self) -> Option<(Duration, Duration)> {
        let Times { has_queued, queue_ns, compute_ns } = self;
        let duration = |ns: &AtomicU64| Duration::from_nanos(ns.load(Relaxed));
        has_queued.load(Relaxed).then(|| (duration(queue_ns), duration(compute_ns)))
    }
}

impl Observer for Times {
    fn finish(&self, timeline: &Timeline) {
        if timeline.queued.is_none() {
            return;
        }
        let Times { has_queued, queue_ns, compute_ns } = self;
        let add = |sum: &AtomicU64, time: Duration| {
            sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        };
        add(queue_ns, timeline.queue());
        add(compute_ns, timeline.compute());
        has_queued.store(true, Relaxed);
    }

    /// Only steps add their times. A call from within a model runs while that model computes, so the caller's time includes it.
    fn child(self: Arc<Self>, _: &str, cause: Cause) -> Option<Arc<dyn Observer>> {
        (cause == Cause::Step).then_some(self as _)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn times_of_steps_are_added_up_and_an_ensemble_alone_has_no_queue_time() {
        let times = Arc::new(Times::default());
        let start = Instant::now();
        let at = |ms| Some(start + Duration::from_millis(ms));
        let mut step = Timeline::new(start);
        (step.queued, step.compute_start, step.end) = (at(1), at(3), at(10));
        times.finish(&Timeline { end: at(20), ..Timeline::new(start) });
        assert_eq!(times.queue_and_compute(), None);
        for _ in 0..2 {
            let child = times.clone().child("step", Cause::Step);
            child.expect("a child").finish(&step);
        }
        assert!(times.clone().child("called", Cause::ModelCall { passes_trace: true }).is_none());
        let expected = (Duration::from_millis(4), Duration::from_millis(14));
        assert_eq!(times.queue_and_compute(), Some(expected));
    }
}

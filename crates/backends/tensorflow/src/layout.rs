//! Which thread computes what: the reasoning and the measurements are in `docs/adr/0024-tensorflow-threads.md`.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::{
    settings::Settings,
    tensorflow::{RunPlace, SessionOptions},
};

/// Runs shorter than this stay on the calling thread: handing their operations over would cost more than it wins.
const SHORT_RUN: Duration = Duration::from_millis(1);

/// How a session computes, as the configuration has it. Threads that it does not name are TensorFlow's own choice: as many
/// as cores.
pub(crate) fn session_options(settings: &Settings) -> SessionOptions {
    SessionOptions {
        intra_op_threads: settings.intra_op_threads.unwrap_or(0),
        inter_op_threads: settings.inter_op_threads.unwrap_or(0),
        has_own_threads: settings.has_own_threads,
        soft_placement: settings.soft_placement,
        graph_level: settings.graph_level,
    }
}

/// Where the operations of a model's runs are computed.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// The configuration names a number of threads: they compute every run.
    is_on_threads: bool,
    /// Runs under way.
    running: AtomicUsize,
    /// Recent duration of a run, smoothed; 0 before the first.
    typical_nanos: AtomicU64,
}

impl Placement {
    pub fn new(settings: &Settings) -> Self {
        Self { is_on_threads: settings.inter_op_threads.is_some(), ..Self::default() }
    }

    /// Calls `run` with the place for it: a long run alone has all threads for its operations, others are kept apart, each on
    /// its own thread.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long executions take decides how they are run"
    )]
    pub fn place<T>(&self, run: impl FnOnce(RunPlace) -> T) -> T {
        let others = Running::begin(&self.running);
        let is_short = self.typical_nanos.load(Ordering::Relaxed) < nanos(SHORT_RUN);
        let place = match self.is_on_threads || (others.were_none && !is_short) {
            true => RunPlace::OnThreads,
            false => RunPlace::Here,
        };
        let started = Instant::now();
        let result = run(place);
        self.note(started.elapsed());
        result
    }

    fn note(&self, took: Duration) {
        let (before, now) = (self.typical_nanos.load(Ordering::Relaxed), nanos(took));
        let smoothed = if before == 0 { now } else { before - before / 8 + now / 8 };
        self.typical_nanos.store(smoothed, Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A run under way, until it is dropped, also by a panic.
struct Running<'a> {
    count: &'a AtomicUsize,
    /// Whether it is the only one.
    were_none: bool,
}

impl<'a> Running<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        Self { count, were_none: count.fetch_add(1, Ordering::Relaxed) == 0 }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_alone_have_all_threads() {
        let placement = Placement::default();
        assert_eq!(placement.place(|place| place), RunPlace::Here, "nothing is known yet");
        placement.note(Duration::from_secs(1));
        let (alone, beside) = placement.place(|alone| (alone, placement.place(|place| place)));
        assert_eq!((alone, beside), (RunPlace::OnThreads, RunPlace::Here));
        placement.note(Duration::from_secs(1));
        assert_eq!(placement.place(|place| place), RunPlace::OnThreads, "the other one is over");
        (0..100).for_each(|_| placement.note(Duration::from_micros(50)));
        assert_eq!(placement.place(|place| place), RunPlace::Here, "runs have become short");
        let asked = Placement { is_on_threads: true, ..Placement::default() };
        assert_eq!(asked.place(|place| place), RunPlace::OnThreads, "as the configuration says");
    }
}

//! Assigns runs to threads: the reasoning and the measurements are in `docs/adr/0024-tensorflow-threads.md`.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use galatea_native_library::TypicalDuration;

use crate::{settings::Settings, tensorflow::RunPlace};

/// Runs shorter than this stay on the calling thread: handing their operations over would cost more than it saves.
const SHORT_RUN: Duration = Duration::from_millis(1);

/// The placement of a model's runs on threads.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// True if the configuration names a number of threads, which then compute every run.
    is_on_threads: bool,
    /// Number of runs in progress.
    running: AtomicUsize,
    typical: TypicalDuration,
}

impl Placement {
    pub fn new(settings: &Settings) -> Self {
        Self { is_on_threads: settings.session.inter_op_threads > 0, ..Self::default() }
    }

    /// Calls `run` with its place. A long run alone uses all threads for its operations; others use only their own thread.
    /// its own thread.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long executions take decides how they are run"
    )]
    pub fn place<T>(&self, run: impl FnOnce(RunPlace) -> T) -> T {
        let others = RunGuard::begin(&self.running);
        let is_short = self.typical.is_below(SHORT_RUN);
        let place = match self.is_on_threads || (others.were_none && !is_short) {
            true => RunPlace::OnThreads,
            false => RunPlace::Here,
        };
        let started = Instant::now();
        let result = run(place);
        self.typical.note(started.elapsed());
        result
    }
}

/// Counts a run until it is dropped, even by a panic.
struct RunGuard<'a> {
    count: &'a AtomicUsize,
    /// True if no other run was in progress when it began.
    were_none: bool,
}

impl<'a> RunGuard<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        Self { count, were_none: count.fetch_add(1, Ordering::Relaxed) == 0 }
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_run_without_others_uses_all_threads() {
        let placement = Placement::default();
        assert_eq!(placement.place(|place| place), RunPlace::Here, "nothing is known yet");
        placement.typical.note(Duration::from_secs(1));
        let (alone, beside) = placement.place(|alone| (alone, placement.place(|place| place)));
        assert_eq!((alone, beside), (RunPlace::OnThreads, RunPlace::Here));
        placement.typical.note(Duration::from_secs(1));
        assert_eq!(placement.place(|place| place), RunPlace::OnThreads, "the other one is over");
        (0..100).for_each(|_| placement.typical.note(Duration::from_micros(50)));
        assert_eq!(placement.place(|place| place), RunPlace::Here, "runs have become short");
        let asked = Placement { is_on_threads: true, ..Placement::default() };
        assert_eq!(asked.place(|place| place), RunPlace::OnThreads, "as the configuration says");
    }
}

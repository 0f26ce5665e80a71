//! Assigns runs to threads: the reasoning and the measurements are in
//! `docs/adr/0003-onnx-thread-layout.md`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use galatea_native_library::TypicalDuration;

use crate::ort::RunMode;

/// Runs shorter than this stay on the calling thread: handing them over would cost more than it saves.
const SHORT_RUN: Duration = Duration::from_micros(400);

/// The placement of one session's overlapping runs on its threads.
#[derive(Default)]
pub(crate) struct RunPlacement {
    /// True if a second run may use a thread of the session's own.
    can_use_pool: bool,
    /// True while a run is being computed on its calling thread.
    is_here_taken: AtomicBool,
    typical: TypicalDuration,
}

impl RunPlacement {
    pub fn new(can_use_pool: bool) -> Self {
        Self { can_use_pool, ..Self::default() }
    }

    /// Calls `run` with the place for its computation. `is_shared`: runs of other instances may overlap with it.
    ///
    /// A run alone is computed by its own thread with all others helping. One that overlaps is given to a single thread of
    /// the session's pool. Under load each core then computes one run by itself and none waits for another.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long executions take decides how they are run"
    )]
    pub fn place<T>(&self, is_shared: bool, run: impl FnOnce(RunMode) -> T) -> T {
        if !self.can_use_pool || !is_shared {
            return run(RunMode::Here);
        }
        let started = Instant::now();
        let result = if self.typical.is_below(SHORT_RUN) {
            run(RunMode::Here)
        } else if self.is_here_taken.swap(true, Ordering::Acquire) {
            run(RunMode::OnPool)
        } else {
            let _own_thread = OwnThread(&self.is_here_taken);
            run(RunMode::Here)
        };
        self.typical.note(started.elapsed());
        result
    }
}

/// A guard that frees the calling thread for the next run, even if this one panics.
struct OwnThread<'a>(&'a AtomicBool);

impl Drop for OwnThread<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Returns the cores this process may use. Hyper-threads of one core count once, limits of the container apply.
pub(crate) fn usable_cores() -> usize {
    let allowed = thread::available_parallelism().map_or(1, |n| n.get());
    galatea_system::physical_cores().map_or(allowed, |physical| physical.min(allowed)).max(1)
}

//! Which thread computes what: the reasoning and the measurements are in
//! `docs/adr/0003-onnx-thread-layout.md`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use galatea_native_library::TypicalDuration;

use crate::ort::RunMode;

/// Runs shorter than this stay on the calling thread: handing them over would cost more than it wins.
const SHORT_RUN: Duration = Duration::from_micros(400);

/// How the overlapping runs of one session share its threads.
#[derive(Default)]
pub(crate) struct RunPlacement {
    /// Whether a second run may go to a thread of the session's own, where there can be one.
    can_use_pool: bool,
    /// Whether some run is being computed on its calling thread.
    is_here_taken: AtomicBool,
    typical: TypicalDuration,
}

impl RunPlacement {
    pub fn new(can_use_pool: bool) -> Self {
        Self { can_use_pool, ..Self::default() }
    }

    /// Calls `run` with the place where it is to be computed. `is_shared`: runs of other instances may overlap with it.
    ///
    /// A run alone is computed by its own thread with every other one helping. One that overlaps is
    /// given to a single thread of the session's pool, so that under load each core computes one run by
    /// itself and none waits for another.
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

/// Frees the calling thread for the next run, also when this one panics.
struct OwnThread<'a>(&'a AtomicBool);

impl Drop for OwnThread<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Cores this process may use: hyper-threads of one core count once, limits of the container apply.
pub(crate) fn usable_cores() -> usize {
    let allowed = thread::available_parallelism().map_or(1, |n| n.get());
    galatea_system::physical_cores().map_or(allowed, |physical| physical.min(allowed)).max(1)
}

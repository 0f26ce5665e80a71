//! The threads of the pool, and their queue.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex},
    thread,
};

use galatea_types::{CondvarExt, LockExt};
use tokio::sync::oneshot;

use super::HeavyWorkError;
use crate::panic_boundary::catch_panic_in_poll;

/// Added to the niceness of the process. A pool thread gets a tenth of a connection thread's share of a contended core.
const NICENESS: i32 = 10;

type Work = Box<dyn FnOnce() + Send>;

pub(super) struct Pool {
    most_threads: usize,
    most_waiting: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle_threads: usize,
    refused: u64,
    is_closed: bool,
}

impl Pool {
    pub fn new(most_threads: usize, most_waiting: usize) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { most_threads, most_waiting, state, changed })
    }

    /// Queues work. The receiver fails if the work panicked.
    pub fn submit<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, HeavyWorkError> {
        let (result, receiver) = oneshot::channel();
        let work = Box::new(move || {
            if !result.is_closed() {
                // The result is ignored if nobody waits for it any more.
                let _ = result.send(work());
            }
        });
        self.push(work)?;
        Ok(receiver)
    }

    fn push(self: &Arc<Self>, work: Work) -> Result<(), HeavyWorkError> {
        let mut state = self.state.lock_unpoisoned();
        let full = HeavyWorkError::Full { waiting: self.most_waiting };
        if state.waiting.len() >= self.most_waiting {
            state.refused += 1;
            return Err(full);
        }
        if state.idle_threads <= state.waiting.len() && state.threads < self.most_threads {
            state.threads += self.start_thread(state.threads);
        }
        if state.threads == 0 {
            state.refused += 1;
            return Err(full);
        }
        state.waiting.push_back(work);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Returns how much work waits, and how much was refused since the start.
    pub fn counts(&self) -> (usize, u64) {
        let state = self.state.lock_unpoisoned();
        (state.waiting.len(), state.refused)
    }

    /// Starts a thread. Returns the number of started threads: 1, or 0 if the system refused it.
    fn start_thread(self: &Arc<Self>, index: usize) -> usize {
        let pool = self.clone();
        let thread = thread::Builder::new().name(format!("heavy-{index}"));
        match thread.spawn(move || pool.work()) {
            Ok(_) => 1,
            Err(error) => {
                log::warn!("failed to start a thread for long requests: {error}");
                0
            }
        }
    }

    fn work(&self) {
        lower_priority();
        while let Some(work) = self.next() {
            catch_panic_in_poll("work on a long request", work);
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.state.lock_unpoisoned();
        state.idle_threads += 1;
        let mut state = self
            .changed
            .wait_while_unpoisoned(state, |state| state.waiting.is_empty() && !state.is_closed);
        state.idle_threads -= 1;
        if state.is_closed { None } else { state.waiting.pop_front() }
    }

    /// Ends the threads after their current work, and drops the waiting work.
    pub fn close(&self) {
        let mut state = self.state.lock_unpoisoned();
        state.is_closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        drop(waiting);
    }
}

/// Lowers the priority of this thread alone.
fn lower_priority() {
    // A failure costs latency only: long requests then take an equal share of the cores.
    if let Err(error) = rustix::process::nice(NICENESS) {
        log::debug!("cannot lower the priority of long requests: {error}");
    }
}

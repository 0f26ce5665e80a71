//! How many requests have not had their last response, where no queue counts them.

use std::{
    sync::{Condvar, Mutex},
    time::Instant,
};

use galatea_types::{CondvarExt as _, LockExt as _};

/// Counts requests in flight, and refuses new ones once it is closed.
#[derive(Default)]
pub(crate) struct InFlight {
    state: Mutex<State>,
    became_idle: Condvar,
}

#[derive(Default)]
struct State {
    count: usize,
    is_closed: bool,
    /// Threads that wait for the last request; while there are none, nobody is notified.
    waiters: usize,
}

impl InFlight {
    /// A request comes in; false when it is refused.
    pub fn enter(&self) -> bool {
        let mut state = self.state.lock_unpoisoned();
        state.count += usize::from(!state.is_closed);
        !state.is_closed
    }

    /// A request had its last response.
    pub fn leave(&self) {
        let mut state = self.state.lock_unpoisoned();
        state.count -= 1;
        if state.count == 0 && state.waiters > 0 {
            self.became_idle.notify_all();
        }
    }

    pub fn count(&self) -> usize {
        self.state.lock_unpoisoned().count
    }

    pub fn close(&self) {
        self.state.lock_unpoisoned().is_closed = true;
    }

    /// Whether nothing is in flight and nothing can come in.
    pub fn is_closed_and_idle(&self) -> bool {
        let state = self.state.lock_unpoisoned();
        state.is_closed && state.count == 0
    }

    /// Waits until nothing is in flight; false when something is at `deadline`.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        let limit = deadline.saturating_duration_since(Instant::now());
        let mut state = self.state.lock_unpoisoned();
        state.waiters += 1;
        let waited =
            self.became_idle.wait_timeout_while_unpoisoned(state, limit, |state| state.count > 0);
        let (mut state, is_timed_out) = waited;
        state.waiters -= 1;
        !is_timed_out
    }
}

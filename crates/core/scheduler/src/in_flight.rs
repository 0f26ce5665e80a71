//! How many requests have not had their last response, where no queue counts them.

use std::{
    sync::{Condvar, Mutex},
    time::Instant,
};

use galatea_types::{Clock, LockExt as _};

/// Counts requests in flight, and refuses new ones once it is closed.
pub(crate) struct InFlight {
    state: Mutex<State>,
    became_idle: Condvar,
    clock: Clock,
}

#[derive(Default)]
struct State {
    count: usize,
    is_closed: bool,
    /// Threads that wait for the last request; while there are none, nobody is notified.
    waiters: usize,
}

impl InFlight {
    /// Nothing is in flight. `clock` tells when a wait is over.
    pub fn new(clock: Clock) -> Self {
        Self { state: Mutex::default(), became_idle: Condvar::new(), clock }
    }

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
        let mut state = self.state.lock_unpoisoned();
        state.waiters += 1;
        let is_busy = |state: &mut State| state.count > 0;
        let waited = self.clock.wait_while_until(&self.became_idle, state, deadline, is_busy);
        let (mut state, is_timed_out) = waited;
        state.waiters -= 1;
        !is_timed_out
    }
}

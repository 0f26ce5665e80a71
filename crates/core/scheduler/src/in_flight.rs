//! Counts requests that have not had their last response, if no queue counts them.

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
    /// The number of threads that wait for the last request. With none, nobody is notified.
    waiters: usize,
}

impl InFlight {
    /// Creates a counter at 0. `clock` decides when a wait is over.
    pub fn new(clock: Clock) -> Self {
        Self { state: Mutex::default(), became_idle: Condvar::new(), clock }
    }

    /// Counts a new request; returns false if it is refused.
    pub fn enter(&self) -> bool {
        let mut state = self.state.lock_unpoisoned();
        state.count += usize::from(!state.is_closed);
        !state.is_closed
    }

    /// Ends a request, which has had its last response.
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

    /// Returns true if no request is in flight and none can be added.
    pub fn is_closed_and_idle(&self) -> bool {
        let state = self.state.lock_unpoisoned();
        state.is_closed && state.count == 0
    }

    /// Waits until no request is in flight; returns false if one still is at `deadline`.
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

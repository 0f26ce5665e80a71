//! Counts executions of an instance that still answer requests after `execute` has returned.

use std::{sync::Arc, time::Instant};

use galatea_types::Clock;

use crate::{
    load::BusyTime,
    sync::{Condvar, CondvarExt, LockExt, Mutex},
};

/// The executions of one instance whose requests are not all answered. The instance is needed while there are any.
pub(crate) struct OpenStreams {
    state: Mutex<OpenState>,
    /// Notified only while somebody waits, because that is a call of the system.
    changed: Condvar,
    /// The busy time of the instance, which is busy while there are open streams.
    busy: Arc<BusyTime>,
    clock: Clock,
}

#[derive(Default)]
struct OpenState {
    count: usize,
    is_awaited: bool,
}

/// One open execution, until it is dropped.
pub(crate) struct OpenStream(Arc<OpenStreams>);

impl OpenStreams {
    pub fn new(busy: Arc<BusyTime>, clock: Clock) -> Self {
        Self { state: Mutex::new(OpenState::default()), changed: Condvar::new(), busy, clock }
    }

    /// Opens a stream. `begun` is the time its execution began.
    pub fn open(self: &Arc<Self>, begun: Instant) -> OpenStream {
        let mut state = self.state.lock_unpoisoned();
        state.count += 1;
        self.busy.begin(begun);
        drop(state);
        OpenStream(self.clone())
    }

    /// Waits until all open streams are dropped.
    pub fn wait_until_none(&self) {
        let mut state = self.state.lock_unpoisoned();
        state.is_awaited = true;
        drop(self.changed.wait_while_unpoisoned(state, |state| state.count > 0));
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut state = self.0.state.lock_unpoisoned();
        state.count -= 1;
        let is_last = state.count == 0;
        if is_last {
            self.0.busy.end(self.0.clock.now());
        }
        let is_awaited = state.is_awaited && is_last;
        drop(state);
        if is_awaited {
            self.0.changed.notify_all();
        }
    }
}

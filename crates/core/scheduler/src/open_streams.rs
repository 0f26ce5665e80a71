//! Counts executions of an instance that still answer requests after `execute` has returned.

use std::{sync::Arc, time::Instant};

use galatea_types::Clock;

use crate::{
    load::BusyTime,
    sync::{Condvar, CondvarExt, LockExt, Mutex},
};

/// The executions of one instance whose requests are not all answered. The instance is needed while there are any.
pub(crate) struct OpenStreams {
    count: Mutex<usize>,
    changed: Condvar,
    /// The busy time of the instance, which is busy while there are open streams.
    busy: Arc<BusyTime>,
    clock: Clock,
}

/// One open execution, until it is dropped.
pub(crate) struct OpenStream(Arc<OpenStreams>);

impl OpenStreams {
    pub fn new(busy: Arc<BusyTime>, clock: Clock) -> Self {
        Self { count: Mutex::new(0), changed: Condvar::new(), busy, clock }
    }

    /// Opens a stream. `begun` is the time its execution began.
    pub fn open(self: &Arc<Self>, begun: Instant) -> OpenStream {
        let mut count = self.count.lock_unpoisoned();
        *count += 1;
        self.busy.begin(begun);
        drop(count);
        OpenStream(self.clone())
    }

    /// Waits until all open streams are dropped.
    pub fn wait_until_none(&self) {
        let count = self.count.lock_unpoisoned();
        drop(self.changed.wait_while_unpoisoned(count, |count| *count > 0));
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut count = self.0.count.lock_unpoisoned();
        *count -= 1;
        if *count == 0 {
            self.0.busy.end(self.0.clock.now());
        }
        drop(count);
        self.0.changed.notify_all();
    }
}

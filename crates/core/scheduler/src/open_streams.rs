//! How many executions of an instance still answer requests after `execute` has returned.

use std::{sync::Arc, time::Instant};

use galatea_types::Clock;

use crate::{
    load::BusyTime,
    sync::{Condvar, CondvarExt, LockExt, Mutex},
};

/// The executions of one instance whose requests are not all answered: as long as there are any, the instance is needed.
pub(crate) struct OpenStreams {
    count: Mutex<usize>,
    changed: Condvar,
    /// Of the instance, which is at work as long as there are any.
    busy: Arc<BusyTime>,
    clock: Clock,
}

/// One of them, until it is dropped.
pub(crate) struct OpenStream(Arc<OpenStreams>);

impl OpenStreams {
    pub fn new(busy: Arc<BusyTime>, clock: Clock) -> Self {
        Self { count: Mutex::new(0), changed: Condvar::new(), busy, clock }
    }

    /// `begun`: when the execution began.
    pub fn open(self: &Arc<Self>, begun: Instant) -> OpenStream {
        let mut count = self.count.lock_unpoisoned();
        *count += 1;
        self.busy.begin(begun);
        drop(count);
        OpenStream(self.clone())
    }

    /// Waits until all that were opened are dropped.
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

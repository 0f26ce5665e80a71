//! How many executions of an instance still answer requests after `execute` has returned.

use std::sync::Arc;

use crate::sync::{Condvar, CondvarExt, LockExt, Mutex};

/// The executions of one instance whose requests are not all answered: as long as there are any, the instance is needed.
#[derive(Default)]
pub(crate) struct OpenStreams {
    count: Mutex<usize>,
    changed: Condvar,
}

/// One of them, until it is dropped.
pub(crate) struct OpenStream(Arc<OpenStreams>);

impl OpenStreams {
    pub fn open(self: &Arc<Self>) -> OpenStream {
        *self.count.lock_unpoisoned() += 1;
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
        *self.0.count.lock_unpoisoned() -= 1;
        self.0.changed.notify_all();
    }
}

//! Calls of a worker to other models that are not answered yet.

use std::{collections::HashMap, sync::Mutex};

use galatea_types::{Cancellation, LockExt as _};

/// How to cancel each call, by the id that the worker gave it.
#[derive(Default)]
pub(crate) struct BlsCalls(Mutex<HashMap<u64, Cancellation>>);

/// Calls that one worker may have open: a model that calls itself, or never waits for a response, comes to an end here.
pub(crate) const MAX_OPEN_CALLS: usize = 4096;

impl BlsCalls {
    /// `None`: the worker has too many already.
    pub fn add(&self, call: u64) -> Option<Cancellation> {
        let mut open = self.0.lock_unpoisoned();
        if open.len() >= MAX_OPEN_CALLS {
            return None;
        }
        let cancellation = Cancellation::default();
        open.insert(call, cancellation.clone());
        Some(cancellation)
    }

    pub fn remove(&self, call: u64) {
        self.0.lock_unpoisoned().remove(&call);
    }

    pub fn cancel(&self, call: u64) {
        if let Some(cancellation) = self.0.lock_unpoisoned().get(&call) {
            cancellation.cancel();
        }
    }

    pub fn cancel_all(&self) {
        self.0.lock_unpoisoned().drain().for_each(|(_, cancellation)| cancellation.cancel());
    }
}

//! Calls of a worker to other models that are not answered yet.

use std::{collections::HashMap, sync::Mutex};

use galatea_types::{Cancellation, LockExt as _};

/// How to cancel each call, by the id that the worker gave it.
#[derive(Default)]
pub(crate) struct BlsCalls(Mutex<HashMap<u64, Cancellation>>);

impl BlsCalls {
    pub fn add(&self, call: u64) -> Cancellation {
        let cancellation = Cancellation::default();
        self.0.lock_unpoisoned().insert(call, cancellation.clone());
        cancellation
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

//! Calls of a worker to other models that are not answered yet.

use std::{collections::HashMap, sync::Mutex};

use galatea_types::Cancellation;

use crate::sync::lock;

/// How to cancel each call, by the id that the worker gave it.
#[derive(Default)]
pub(crate) struct BlsCalls(Mutex<HashMap<u64, Cancellation>>);

impl BlsCalls {
    pub fn add(&self, call: u64) -> Cancellation {
        let cancellation = Cancellation::default();
        lock(&self.0).insert(call, cancellation.clone());
        cancellation
    }

    pub fn remove(&self, call: u64) {
        lock(&self.0).remove(&call);
    }

    pub fn cancel(&self, call: u64) {
        if let Some(cancellation) = lock(&self.0).get(&call) {
            cancellation.cancel();
        }
    }

    pub fn cancel_all(&self) {
        lock(&self.0).drain().for_each(|(_, cancellation)| cancellation.cancel());
    }
}

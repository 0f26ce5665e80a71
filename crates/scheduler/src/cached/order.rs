//! The order in which answers leave where the configuration has `preserve_ordering`: a hit must not overtake a request that
//! came before it and is being executed.

use std::sync::Arc;

use galatea_types::Responder;

use crate::{
    completion::CompletionQueue,
    sync::{LockExt, Mutex},
};

/// Numbers requests as they come.
#[derive(Default)]
pub(super) struct Order {
    queue: Arc<CompletionQueue>,
    next: Mutex<u64>,
}

impl Order {
    /// A responder that keeps the order. It must get an answer, or those behind it never do.
    pub fn admit(&self, responder: Responder) -> Responder {
        let mut next = self.next.lock_unpoisoned();
        let arrival = *next;
        *next += 1;
        self.queue.clone().admit(arrival, responder)
    }
}

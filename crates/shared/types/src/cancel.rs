//! Cancels requests for their clients and other callers.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag for a request whose response nobody waits for. The front end sets it, and the code that executes the request checks it.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    is_set: AtomicBool,
    parent: Option<Cancellation>,
}

impl Cancellation {
    /// Makes the flag of a part of the work. Cancelling the whole cancels the part, but not the reverse.
    pub fn child(&self) -> Self {
        Self(Arc::new(Flag { is_set: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Cancels the request and its parts. Can be called any number of times.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Returns whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let Flag { is_set, parent } = &*self.0;
        is_set.load(Ordering::Relaxed) || parent.as_ref().is_some_and(Cancellation::is_cancelled)
    }
}

/// Cancels a request when it is dropped before the last response, for example when the client closes the connection.
#[derive(Debug)]
pub struct CancelOnDrop(Option<Cancellation>);

impl CancelOnDrop {
    /// Guards the request of `cancellation`.
    pub fn new(cancellation: Cancellation) -> Self {
        Self(Some(cancellation))
    }

    /// Stops guarding the request, because its last response is there.
    pub fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancellation) = &self.0 {
            cancellation.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_the_whole_cancels_the_parts_but_not_the_reverse() {
        let whole = Cancellation::default();
        let (one, other) = (whole.child(), whole.child().child());
        one.cancel();
        assert!(one.is_cancelled() && !other.is_cancelled() && !whole.is_cancelled());
        whole.cancel();
        assert!(other.is_cancelled());
    }
}

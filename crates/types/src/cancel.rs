use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Says that nobody waits for the answer any more. Shared by the front end, which sets it, and whoever
/// works on the request, who asks.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

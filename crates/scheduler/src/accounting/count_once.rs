//! One execution counts once, whichever of several threads is first to count it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether it was counted.
#[derive(Default)]
pub(crate) struct CountOnce(AtomicBool);

impl CountOnce {
    /// True for one caller, who must count.
    pub fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

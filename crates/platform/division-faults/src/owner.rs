//! The owner of a thread's divisions, for which the signal handler counts a fault.

use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

thread_local! {
    /// Counter of this thread's faults; null if it works for no run. Constant at first and without a destructor, so that a
    /// signal handler can read it at any time.
    static OWNER: Cell<*const AtomicU64> = const { Cell::new(ptr::null()) };
}

/// Faults of threads that work for no run, while a run with unknown threads was in progress.
static UNOWNED: AtomicU64 = AtomicU64::new(0);
/// Number of runs in progress with unknown threads.
static EXPECTING: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of faults so far of threads that work for no run.
pub(crate) fn unowned() -> u64 {
    UNOWNED.load(Ordering::SeqCst)
}

/// Calls `work`, and counts faults of this thread in `counter` meanwhile.
pub(crate) fn counting<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let before = OWNER.replace(counter);
    let _restore = Restore(before);
    work()
}

/// Restores the previous counter, even after a panic.
struct Restore(*const AtomicU64);

impl Drop for Restore {
    fn drop(&mut self) {
        OWNER.set(self.0);
    }
}

/// While it lives, faults of threads that work for no run may belong to a run.
pub(crate) struct FaultGuard(());

impl FaultGuard {
    pub fn begin() -> Self {
        EXPECTING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        EXPECTING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts a fault of the calling thread. Returns false if it can belong to no run. Called by the signal handler.
#[cfg(target_arch = "x86_64")]
pub(crate) fn note_fault() -> bool {
    let owner = OWNER.get();
    // SAFETY: `counting` borrows the counter for as long as its address stands here.
    let counter = match unsafe { owner.as_ref() } {
        Some(counter) => counter,
        None if EXPECTING.load(Ordering::SeqCst) > 0 => &UNOWNED,
        None => return false,
    };
    counter.fetch_add(1, Ordering::SeqCst);
    true
}

//! Whose divisions a thread makes: what the signal handler counts a fault for.

use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

thread_local! {
    /// Where faults of this thread are counted; null where it works for nobody in particular. Constant at first and
    /// without a destructor, so that a signal handler can read it at any time.
    static OWNER: Cell<*const AtomicU64> = const { Cell::new(ptr::null()) };
}

/// Faults of threads that work for nobody in particular, while somebody ran whose threads are not known.
static UNOWNED: AtomicU64 = AtomicU64::new(0);
/// How many run now whose threads are not all known.
static EXPECTING: AtomicUsize = AtomicUsize::new(0);

/// Faults so far of threads that work for nobody in particular.
pub(crate) fn unowned() -> u64 {
    UNOWNED.load(Ordering::SeqCst)
}

/// Calls `work`; faults of this thread are counted in `counter` meanwhile.
pub(crate) fn counting<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let before = OWNER.replace(counter);
    let _restore = Restore(before);
    work()
}

/// Also after a panic.
struct Restore(*const AtomicU64);

impl Drop for Restore {
    fn drop(&mut self) {
        OWNER.set(self.0);
    }
}

/// While it lives, faults of threads that work for nobody in particular may be those of a run.
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

/// Counts a fault of the calling thread; false where it can be nobody's. Called by the signal handler.
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

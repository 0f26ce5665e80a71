//! The count of requests in progress, and the gate that refuses new ones.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use galatea_types::{CondvarExt, LockExt};

/// Counts the requests in progress and refuses new ones once it is closed. A shutdown needs both.
#[derive(Debug, Default)]
pub struct InFlight {
    count: AtomicUsize,
    is_draining: AtomicBool,
    is_closed: AtomicBool,
    /// Guards only the wait. Every request changes the count, which therefore needs no lock.
    idle: Mutex<()>,
    became_idle: Condvar,
}

impl InFlight {
    /// Counts a request until the guard is dropped, even if the gate is closed. For requests that are answered to the
    /// very end.
    pub fn begin(self: &Arc<Self>) -> RequestGuard {
        self.count.fetch_add(1, Ordering::SeqCst);
        RequestGuard(self.clone())
    }

    /// Counts a request until the guard is dropped. Returns `None` if the gate is closed.
    pub fn try_begin(self: &Arc<Self>) -> Option<RequestGuard> {
        // Counts before it reads the flag, so that a caller that closes and then sees zero misses no request.
        let guard = self.begin();
        (!self.is_closed()).then_some(guard)
    }

    /// Asks clients to disconnect from now on. Their requests are still answered.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// Returns `true` once clients are asked to disconnect.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// Refuses requests from now on.
    pub fn close(&self) {
        self.drain();
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Returns `true` once requests are refused.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Returns the number of requests in progress.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits at most `timeout` until no request is in progress. Returns the number that still are.
    ///
    /// Only a closed gate wakes the waiter early.
    pub fn wait_idle(&self, timeout: Duration) -> usize {
        let is_busy = |(): &mut ()| self.count() > 0;
        drop(self.became_idle.wait_timeout_while_unpoisoned(
            self.idle.lock_unpoisoned(),
            timeout,
            is_busy,
        ));
        self.count()
    }
}

/// Held while a request is answered.
#[derive(Debug)]
pub struct RequestGuard(Arc<InFlight>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let was_last = self.0.count.fetch_sub(1, Ordering::SeqCst) == 1;
        // A thread can only be waiting if the gate is closed.
        if was_last && self.0.is_closed() {
            // Takes the lock so that the wake-up cannot fall between the waiter's check and its sleep.
            drop(self.0.idle.lock_unpoisoned());
            self.0.became_idle.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_last_request_wakes_the_waiter() {
        let in_flight = Arc::new(InFlight::default());
        let guard = in_flight.try_begin().expect("open");
        in_flight.close();
        assert!(in_flight.try_begin().is_none());
        let waiter = thread::spawn({
            let in_flight = in_flight.clone();
            move || in_flight.wait_idle(Duration::from_secs(60))
        });
        drop(guard);
        assert_eq!(waiter.join().expect("no panic"), 0);
    }

    #[test]
    fn requests_that_outlast_the_deadline_are_counted() {
        let in_flight = Arc::new(InFlight::default());
        let _guard = in_flight.begin();
        assert_eq!(in_flight.wait_idle(Duration::ZERO), 1);
    }
}

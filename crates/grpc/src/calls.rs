use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// Calls in flight, and whether new ones are taken: what a shutdown needs to know.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    in_flight: AtomicUsize,
    is_closed: AtomicBool,
    /// Guards nothing but the wait: the count itself is touched on every call and stays without a lock.
    idle: (Mutex<()>, Condvar),
}

impl Calls {
    /// Counts a call until the guard goes. `None` once the server takes no more.
    pub fn begin(self: &Arc<Self>) -> Option<CallGuard> {
        // Counted before the look at the flag, so that whoever closes and then sees zero misses nobody.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let guard = CallGuard(self.clone());
        (!self.is_closed.load(Ordering::SeqCst)).then_some(guard)
    }

    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Waits until no call is in flight, at most `timeout`. Returns how many still are.
    pub fn wait_idle(&self, timeout: Duration) -> usize {
        let deadline = Instant::now().checked_add(timeout);
        let mut guard = self.idle.0.lock().unwrap_or_else(PoisonError::into_inner);
        while self.in_flight() > 0 {
            let left =
                deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            guard = self.idle.1.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.in_flight()
    }
}

/// One call in flight.
#[derive(Debug)]
pub(crate) struct CallGuard(Arc<Calls>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        let was = self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        if was == 1 && self.0.is_closed.load(Ordering::SeqCst) {
            // Taking the lock keeps the wake-up from falling between the waiter's look and its sleep.
            drop(self.0.idle.0.lock().unwrap_or_else(PoisonError::into_inner));
            self.0.idle.1.notify_all();
        }
    }
}

/// Told when the server closes its connections.
#[derive(Clone, Debug)]
pub(crate) struct Closing(pub watch::Receiver<bool>);

impl Closing {
    /// Returns once it does; at once when it has.
    pub async fn wait(&mut self) {
        // A server that is gone without a word is as good as one that closes.
        drop(self.0.wait_for(|is_closing| *is_closing).await);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_last_call_wakes_the_waiter() {
        let calls = Arc::new(Calls::default());
        let guard = calls.begin().expect("open");
        calls.close();
        assert!(calls.begin().is_none());
        let waiter = thread::spawn({
            let calls = calls.clone();
            move || calls.wait_idle(Duration::from_secs(60))
        });
        drop(guard);
        assert_eq!(waiter.join().expect("no panic"), 0);
    }

    #[test]
    fn a_call_that_stays_is_told() {
        let calls = Arc::new(Calls::default());
        let _guard = calls.begin();
        assert_eq!(calls.wait_idle(Duration::ZERO), 1);
    }
}

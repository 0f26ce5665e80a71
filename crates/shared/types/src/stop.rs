//! Requests to end long work early: a build, a download, a compilation.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{CondvarExt, Error, LockExt, Result};

type Act = Box<dyn FnOnce() + Send>;

/// A request to end long work. The code that requests it and the work that ends share it. A request cannot be withdrawn.
#[derive(Clone, Default)]
pub struct Stop(Arc<State>);

#[derive(Default)]
struct State {
    is_requested: AtomicBool,
    acts: Mutex<Acts>,
    requested: Condvar,
}

#[derive(Default)]
struct Acts {
    next: u64,
    waiting: BTreeMap<u64, Act>,
}

impl Stop {
    /// Asks the work to end, and runs what [`Stop::on_request`] has registered. Later calls do nothing.
    pub fn request(&self) {
        // The lock is held while the acts run: a guard that is dropped waits for its act.
        let mut acts = self.0.acts.lock_unpoisoned();
        self.0.is_requested.store(true, Ordering::Release);
        for (_, act) in std::mem::take(&mut acts.waiting) {
            act();
        }
        self.0.requested.notify_all();
    }

    /// Returns whether the work was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Acquire)
    }

    /// Returns an error once the work was asked to end.
    ///
    /// # Errors
    /// [`Stop::error`].
    pub fn check(&self) -> Result<()> {
        if self.is_requested() { Err(Self::error()) } else { Ok(()) }
    }

    /// Returns the error of work that has ended early.
    pub fn error() -> Error {
        Error::unavailable("interrupted, because the program was asked to stop")
    }

    /// Waits for a request, at most for `limit`. Returns whether there is one.
    pub fn wait(&self, limit: Duration) -> bool {
        let acts = self.0.acts.lock_unpoisoned();
        drop(self.0.requested.wait_timeout_while_unpoisoned(acts, limit, |_| !self.is_requested()));
        self.is_requested()
    }

    /// Runs `act` when the request comes (at once if it has come), unless the guard is dropped first. `act` may not use this
    /// value. After the guard is gone, `act` has run or never will.
    pub fn on_request(&self, act: impl FnOnce() + Send + 'static) -> StopGuard {
        let mut acts = self.0.acts.lock_unpoisoned();
        let number = acts.next;
        acts.next += 1;
        if self.is_requested() {
            act();
        } else {
            acts.waiting.insert(number, Box::new(act));
        }
        drop(acts);
        StopGuard { stop: self.clone(), number }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stop").field(&self.is_requested()).finish()
    }
}

/// Keeps the registration of [`Stop::on_request`].
#[derive(Debug)]
pub struct StopGuard {
    stop: Stop,
    number: u64,
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.stop.0.acts.lock_unpoisoned().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn stop_actions_run_once_unless_their_guard_is_dropped() {
        let stop = Stop::default();
        let (sender, acts) = mpsc::channel();
        let act = |name: &'static str| {
            let sender = sender.clone();
            move || sender.send(name).expect("received")
        };
        let _kept = stop.on_request(act("kept"));
        drop(stop.on_request(act("dropped")));
        assert!(stop.check().is_ok() && !stop.wait(Duration::ZERO));
        stop.request();
        stop.clone().request();
        let _late = stop.on_request(act("late"));
        assert_eq!(acts.try_iter().collect::<Vec<_>>(), ["kept", "late"]);
        assert!(stop.check().is_err() && stop.wait(Duration::from_secs(60)));
    }
}

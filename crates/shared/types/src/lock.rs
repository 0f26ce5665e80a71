//! Locks that stay usable after a thread has panicked while it held them.
//!
//! A panic *poisons* a standard lock, and every later `lock()` is then an error. Here a panic in one request (a model's code, a
//! defect of ours) must fail only that request. Each step of a change leaves the data behind our locks whole, so the next thread
//! may continue with it. This is the only place of that decision; nothing else in the workspace names `PoisonError`.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

/// [`Mutex::lock`] without poisoning; the module's text gives the reason.
pub trait LockExt<T: ?Sized> {
    /// Waits for the mutex and locks it, also after a panic of an earlier holder.
    fn lock_unpoisoned(&self) -> MutexGuard<'_, T>;

    /// Returns the value of a mutex that has no other owner.
    fn into_inner_unpoisoned(self) -> T
    where
        Self: Sized,
        T: Sized;
}

impl<T: ?Sized> LockExt<T> for Mutex<T> {
    fn lock_unpoisoned(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_inner_unpoisoned(self) -> T
    where
        T: Sized,
    {
        self.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`RwLock::read`] and [`RwLock::write`] without poisoning.
pub trait RwLockExt<T: ?Sized> {
    /// Waits for shared access.
    fn read_unpoisoned(&self) -> RwLockReadGuard<'_, T>;

    /// Waits for exclusive access.
    fn write_unpoisoned(&self) -> RwLockWriteGuard<'_, T>;
}

impl<T: ?Sized> RwLockExt<T> for RwLock<T> {
    fn read_unpoisoned(&self) -> RwLockReadGuard<'_, T> {
        self.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_unpoisoned(&self) -> RwLockWriteGuard<'_, T> {
        self.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waits of a [`Condvar`], without poisoning.
///
/// Waits without a condition may return without a cause: call them in a loop that checks a condition.
pub trait CondvarExt {
    /// Unlocks, sleeps until notified, and locks again.
    fn wait_unpoisoned<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T>;

    /// Waits as [`wait_unpoisoned`](Self::wait_unpoisoned) does, for `limit` at most. Returns true when the time is over.
    fn wait_timeout_unpoisoned<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool);

    /// Sleeps while `condition` holds.
    fn wait_while_unpoisoned<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T>;

    /// Sleeps while `condition` holds, for `limit` at most. Returns true when the time is over and it still holds.
    fn wait_timeout_while_unpoisoned<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, bool);
}

impl CondvarExt for Condvar {
    fn wait_unpoisoned<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_timeout_unpoisoned<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = self.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner);
        (waited.0, waited.1.timed_out())
    }

    fn wait_while_unpoisoned<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        self.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_timeout_while_unpoisoned<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = self.wait_timeout_while(guard, limit, condition);
        let waited = waited.unwrap_or_else(PoisonError::into_inner);
        (waited.0, waited.1.timed_out())
    }
}

#[cfg(test)]
mod tests {
    use std::{panic, sync::Arc, thread};

    use super::*;

    /// A mutex whose holder has panicked after it had set the value to 1.
    fn poisoned() -> Arc<Mutex<u32>> {
        let mutex = Arc::new(Mutex::new(0));
        let held = Arc::clone(&mutex);
        let holder = thread::spawn(move || {
            let mut guard = held.lock().unwrap();
            *guard = 1;
            panic::resume_unwind(Box::new("the holder panics"));
        });
        assert!(holder.join().is_err() && mutex.is_poisoned());
        mutex
    }

    #[test]
    fn a_poisoned_mutex_is_locked_with_its_last_value() {
        let mutex = poisoned();
        assert_eq!(*mutex.lock_unpoisoned(), 1);
        assert_eq!(Arc::into_inner(mutex).unwrap().into_inner_unpoisoned(), 1);
    }

    #[test]
    fn waiting_on_a_poisoned_mutex_ends() {
        let (mutex, changed) = (poisoned(), Condvar::new());
        let limit = Duration::from_millis(1);
        let (guard, timed_out) = changed.wait_timeout_unpoisoned(mutex.lock_unpoisoned(), limit);
        assert!(timed_out);
        let (guard, timed_out) = changed.wait_timeout_while_unpoisoned(guard, limit, |v| *v == 1);
        assert!(timed_out);
        let guard = changed.wait_while_unpoisoned(guard, |value| *value == 0);
        assert_eq!(*guard, 1);
    }

    #[test]
    fn a_poisoned_read_write_lock_is_locked() {
        let lock = Arc::new(RwLock::new(0));
        let held = Arc::clone(&lock);
        let holder = thread::spawn(move || {
            *held.write().unwrap() = 1;
            let _guard = held.write().unwrap();
            panic::resume_unwind(Box::new("the holder panics"));
        });
        assert!(holder.join().is_err() && lock.is_poisoned());
        assert_eq!(*lock.read_unpoisoned(), 1);
        *lock.write_unpoisoned() = 2;
        assert_eq!(*lock.read_unpoisoned(), 2);
    }
}

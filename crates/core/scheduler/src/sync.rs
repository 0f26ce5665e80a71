//! Locks, condition variables and threads of the scheduler: those of the standard library, and in unit tests those of a
//! model checker, which runs the threads of a test in many different orders.

#[cfg(not(test))]
pub(crate) use galatea_types::{CondvarExt, LockExt};
#[cfg(not(test))]
pub(crate) use standard::{
    Builder, Condvar, JoinHandle, Mutex, MutexGuard, mpsc, wait_while_until,
};

#[cfg(test)]
pub(crate) use checked::{
    Builder, Condvar, CondvarExt, JoinHandle, LockExt, Mutex, MutexGuard, mpsc, wait_while_until,
};

/// A condition variable, and the mutex whose guard its threads hold.
pub(crate) struct WaitPlace<'a, 'c, T> {
    #[cfg_attr(not(test), expect(dead_code, reason = "only the model checker locks it again"))]
    pub mutex: &'a Mutex<T>,
    pub changed: &'c Condvar,
}

#[cfg(not(test))]
mod standard {
    use std::time::Instant;
    pub(crate) use std::{
        sync::{Condvar, Mutex, MutexGuard, mpsc},
        thread::{Builder, JoinHandle},
    };

    use galatea_types::Clock;

    use super::WaitPlace;

    /// Waits at `place` while `condition` holds, at most until `deadline`. Returns true if the deadline has passed and the
    /// condition still holds.
    pub(crate) fn wait_while_until<'a, T>(
        clock: &Clock,
        place: WaitPlace<'a, '_, T>,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
        condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        clock.wait_while_until(place.changed, guard, deadline, condition)
    }
}

#[cfg(test)]
mod checked {
    use std::time::{Duration, Instant};

    use galatea_types::Clock;
    use shuttle::rand::{Rng, thread_rng};
    pub(crate) use shuttle::{
        sync::{Condvar, Mutex, MutexGuard, mpsc},
        thread::{Builder, JoinHandle},
    };

    use super::WaitPlace;

    /// A time-out of this length is never over, so that a test in which it is all that wakes a thread fails.
    const FOREVER: Duration = Duration::from_secs(3600);

    pub(crate) trait LockExt<T> {
        fn lock_unpoisoned(&self) -> MutexGuard<'_, T>;
    }

    impl<T> LockExt<T> for Mutex<T> {
        fn lock_unpoisoned(&self) -> MutexGuard<'_, T> {
            self.lock().expect("no panic under a lock")
        }
    }

    pub(crate) trait CondvarExt {
        fn wait_while_unpoisoned<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            condition: impl FnMut(&mut T) -> bool,
        ) -> MutexGuard<'a, T>;
    }

    impl CondvarExt for Condvar {
        fn wait_while_unpoisoned<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            condition: impl FnMut(&mut T) -> bool,
        ) -> MutexGuard<'a, T> {
            self.wait_while(guard, condition).expect("no panic under a lock")
        }
    }

    /// The checker has no clock: a shorter time than [`FOREVER`] is over at any moment.
    pub(crate) fn wait_while_until<'a, T>(
        clock: &Clock,
        WaitPlace { mutex, changed }: WaitPlace<'a, '_, T>,
        mut guard: MutexGuard<'a, T>,
        deadline: Instant,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        let limit = clock.until(deadline);
        if limit >= FOREVER {
            return (changed.wait_while_unpoisoned(guard, condition), false);
        }
        while condition(&mut guard) {
            if limit.is_zero() || thread_rng().gen_bool(0.2) {
                return (guard, true);
            }
            drop(guard);
            shuttle::thread::yield_now();
            guard = mutex.lock_unpoisoned();
        }
        (guard, false)
    }
}

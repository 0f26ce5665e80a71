//! The time that rules of the server go by. Tests set it by hand: see [`ManualClock`].

use std::{
    sync::{
        Arc, Condvar, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::CondvarExt;

/// How often a thread looks at a manual clock while it waits for a time.
///
/// A manual clock knows none of the condition variables that threads wait at, so it cannot wake them. The pause is real
/// time, and decides only how soon a test goes on, never what it sees.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Tells the time to rules that depend on it: the system's, or one that a test sets by hand.
///
/// A copy tells the same time. The system's clock costs a branch more than [`Instant::now`], and no memory.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<ManualTime>>);

/// A clock that stands still until a test moves it on.
///
/// It begins at the instant at which it is made, so that its instants are never ahead of those of the system's clock by more
/// than it was moved.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug)]
struct ManualTime {
    begin: Instant,
    /// Nanoseconds since then.
    passed: AtomicU64,
}

impl Clock {
    /// Returns the clock of the machine.
    pub const fn system() -> Self {
        Self(None)
    }

    /// Returns the present instant.
    #[inline]
    pub fn now(&self) -> Instant {
        match &self.0 {
            None => Instant::now(),
            Some(manual) => manual.now(),
        }
    }

    /// Returns how long ago `instant` was; zero for one that is still to come.
    pub fn since(&self, instant: Instant) -> Duration {
        self.now().saturating_duration_since(instant)
    }

    /// Returns how long it takes until `deadline`; zero for one that has passed.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.saturating_duration_since(self.now())
    }

    /// Returns the instant that comes in `wait`; a century hence, where there is none that late.
    pub fn after(&self, wait: Duration) -> Instant {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 86400);
        let now = self.now();
        now.checked_add(wait).unwrap_or(now + CENTURY)
    }

    /// Waits on `changed` as long as `condition` holds, until `deadline` at most; returns true when that has passed and the
    /// condition still holds.
    pub fn wait_while_until<'a, T>(
        &self,
        changed: &Condvar,
        mut guard: MutexGuard<'a, T>,
        deadline: Instant,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        if self.0.is_none() {
            return changed.wait_timeout_while_unpoisoned(guard, self.until(deadline), condition);
        }
        while condition(&mut guard) {
            if self.now() >= deadline {
                return (guard, true);
            }
            (guard, _) = changed.wait_timeout_unpoisoned(guard, LOOK_AGAIN);
        }
        (guard, false)
    }
}

impl ManualClock {
    /// Makes a clock that stands at the present instant.
    pub fn new() -> Self {
        Self(Arc::new(ManualTime { begin: Instant::now(), passed: AtomicU64::new(0) }))
    }

    /// Returns what is handed to the product.
    pub fn clock(&self) -> Clock {
        Clock(Some(self.0.clone()))
    }

    /// Returns the instant at which it stands.
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// Moves it on. Threads that wait for an instant up to the new one go on.
    pub fn advance(&self, by: Duration) {
        self.0.passed.fetch_add(nanos(by), Ordering::SeqCst);
    }

    /// Moves it on to `instant`; it stays where it is when it stands there or later.
    pub fn set(&self, instant: Instant) {
        let passed = nanos(instant.saturating_duration_since(self.0.begin));
        self.0.passed.fetch_max(passed, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualTime {
    fn now(&self) -> Instant {
        self.begin + Duration::from_nanos(self.passed.load(Ordering::SeqCst))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, thread};

    use super::*;
    use crate::LockExt;

    #[test]
    fn a_manual_clock_stands_until_it_is_moved_and_never_goes_back() {
        let manual = ManualClock::new();
        let (clock, begin) = (manual.clock(), manual.now());
        assert_eq!(clock.now(), begin);
        manual.advance(Duration::from_secs(3));
        assert_eq!(
            (clock.since(begin), clock.until(begin)),
            (Duration::from_secs(3), Duration::ZERO)
        );
        manual.set(begin + Duration::from_secs(5));
        manual.set(begin);
        assert_eq!(clock.clone().now(), begin + Duration::from_secs(5));
        assert_eq!(clock.until(begin + Duration::from_secs(7)), Duration::from_secs(2));
        assert!(clock.after(Duration::MAX) > begin + Duration::from_secs(86400));
    }

    #[test]
    fn the_systems_clock_is_that_of_the_machine() {
        let before = Instant::now();
        let told = Clock::system().now();
        assert!(before <= told && told <= Instant::now());
    }

    #[test]
    fn who_waits_goes_on_when_a_manual_clock_is_moved() {
        let (manual, value, changed) = (ManualClock::new(), Mutex::new(0), Condvar::new());
        let deadline = manual.now() + Duration::from_secs(60);
        let wait = || {
            let is_zero = |value: &mut i32| *value == 0;
            manual.clock().wait_while_until(&changed, value.lock_unpoisoned(), deadline, is_zero).1
        };
        thread::scope(|scope| {
            let waiting = scope.spawn(wait);
            manual.advance(Duration::from_secs(59));
            *value.lock_unpoisoned() = 1;
            changed.notify_all();
            assert!(!waiting.join().expect("no panic"), "the condition ended the wait");
            *value.lock_unpoisoned() = 0;
            let waiting = scope.spawn(wait);
            manual.advance(Duration::from_secs(1));
            assert!(waiting.join().expect("no panic"), "the time ended the wait");
        });
    }

    #[test]
    fn on_the_systems_clock_a_deadline_that_has_passed_ends_the_wait() {
        let (value, changed) = (Mutex::new(()), Condvar::new());
        let clock = Clock::system();
        let wait = |holds: bool| {
            clock.wait_while_until(&changed, value.lock_unpoisoned(), clock.now(), |()| holds).1
        };
        assert!(wait(true) && !wait(false));
    }
}

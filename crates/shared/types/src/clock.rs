//! The clock of rules that depend on time. Tests set it by hand: see [`ManualClock`].

use std::{
    sync::{
        Arc, Condvar, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::CondvarExt;

/// Pause between two looks at a manual clock by a thread that waits for a time.
///
/// A manual clock does not know the condition variables at which threads wait, so it cannot wake them. The pause is real time. It
/// decides only how soon a test continues, never what it sees.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The clock of rules that depend on time: the system's, or one that a test sets by hand.
///
/// A copy tells the same time. The system's clock costs a branch more than [`Instant::now`], and no memory.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<ManualTime>>);

/// A clock that moves only when a test advances it.
///
/// It starts at the present instant, so its instants are ahead of the system's clock at most by the distance it was moved.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug)]
struct ManualTime {
    begin: Instant,
    /// Nanoseconds since `begin`.
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

    /// Returns the time since `instant`; zero for a later one.
    pub fn since(&self, instant: Instant) -> Duration {
        self.now().saturating_duration_since(instant)
    }

    /// Returns the time until `deadline`; zero for one that has passed.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.saturating_duration_since(self.now())
    }

    /// Returns the instant after `wait`, or in a century if there is none that late.
    pub fn after(&self, wait: Duration) -> Instant {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 86400);
        let now = self.now();
        now.checked_add(wait).unwrap_or(now + CENTURY)
    }

    /// Waits on `changed` while `condition` holds, until `deadline` at most. Returns true when the deadline has passed and the
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
    /// Makes a clock that shows the present instant.
    pub fn new() -> Self {
        Self(Arc::new(ManualTime { begin: Instant::now(), passed: AtomicU64::new(0) }))
    }

    /// Returns the clock to give to the product.
    pub fn clock(&self) -> Clock {
        Clock(Some(self.0.clone()))
    }

    /// Returns the instant that it shows.
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// Moves it forward. Threads that wait for an instant up to the new one continue.
    pub fn advance(&self, by: Duration) {
        self.0.passed.fetch_add(nanos(by), Ordering::SeqCst);
    }

    /// Moves it forward to `instant`; it does not move backwards.
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
    fn a_manual_clock_stands_still_until_moved_and_never_goes_back() {
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
    fn the_system_clock_follows_the_machine() {
        let before = Instant::now();
        let told = Clock::system().now();
        assert!(before <= told && told <= Instant::now());
    }

    #[test]
    fn moving_a_manual_clock_wakes_waiters() {
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
    fn a_passed_deadline_ends_the_wait_on_the_system_clock() {
        let (value, changed) = (Mutex::new(()), Condvar::new());
        let clock = Clock::system();
        let wait = |holds: bool| {
            clock.wait_while_until(&changed, value.lock_unpoisoned(), clock.now(), |()| holds).1
        };
        assert!(wait(true) && !wait(false));
    }
}

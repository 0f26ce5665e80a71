//! Waits of tests for another thread or process, and tests of thread [orders](interleavings).
//!
//! A test that can be notified (by a channel, a barrier, a condition variable, the end of a call) waits for that. For a state
//! that nothing reports, [`eventually`] looks repeatedly, and fails with the reason when the state does not come. The state must
//! stay once it has come: a look can miss a state that passes, so such a test depends on luck.
#![warn(missing_docs)]

pub mod interleavings;

use std::{
    thread,
    time::{Duration, Instant},
};

/// Longest wait of a test before it fails. A busy machine needs many seconds for work that takes a moment otherwise. Nobody waits
/// this long unless the test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Waits until `look` returns true.
///
/// # Panics
///
/// Panics with `waited 60 s in vain until {what}` when it says no for that long.
#[track_caller]
pub fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    eventually_some(what, || look().then_some(()));
}

/// Waits until `look` finds something, and returns what it found.
///
/// # Panics
///
/// Panics with `waited 60 s in vain until {what}` when it finds nothing for that long.
#[track_caller]
pub fn eventually_some<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    look_for(PATIENCE, look).unwrap_or_else(|| fail(PATIENCE, what))
}

#[track_caller]
fn fail(patience: Duration, what: &str) -> ! {
    panic!("waited {} s in vain until {what}", patience.as_secs())
}

/// Looks at growing intervals: a short wait is noticed at once, and a long wait leaves the processor to others.
#[expect(clippy::disallowed_methods, reason = "this is the one wait of the tests")]
fn look_for<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if begin.elapsed() >= patience {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reached_state_ends_the_wait() {
        let mut looks = 0;
        eventually("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    fn the_found_value_is_returned() {
        let mut left = vec![Some("it"), None];
        assert_eq!(eventually_some("there is something", || left.pop().flatten()), "it");
    }

    #[test]
    fn a_state_that_is_never_reached_is_given_up_after_a_last_check() {
        let mut looks = 0;
        let found: Option<()> = look_for(Duration::ZERO, || {
            looks += 1;
            None
        });
        assert_eq!((found, looks), (None, 1));
    }

    #[test]
    #[should_panic(expected = "waited 60 s in vain until the model is ready")]
    fn the_failure_names_the_awaited_state() {
        fail(PATIENCE, "the model is ready");
    }
}

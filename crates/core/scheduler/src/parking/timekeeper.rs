//! The timekeeper: one more thread, which takes no work but checks the value at a requested time.
//!
//! A thread that adds a value requests a time. It wakes the timekeeper only if that time is earlier than the one the
//! timekeeper sleeps until, so times requested in ascending order wake nobody.

use std::time::Instant;

use super::{Locked, State};
use crate::sync::{CondvarExt, WaitPlace, wait_while_until};

/// The time of the thread's next check.
#[derive(Default)]
pub(super) struct Timekeeper {
    /// `None` until a time is requested.
    next: Option<Instant>,
    /// The next check is not before this, whatever is requested.
    earliest: Option<Instant>,
    is_asleep: bool,
}

impl<S> Locked<'_, S> {
    /// Makes the thread check at this time, if it does not check earlier.
    pub fn look_by(&mut self, time: Instant) {
        let Timekeeper { next, earliest, is_asleep } = &mut self.state.timekeeper;
        let time = earliest.map_or(time, |earliest| earliest.max(time));
        if next.is_some_and(|next| next <= time) {
            return;
        }
        *next = Some(time);
        if *is_asleep {
            self.parking.timekeeper.notify_one();
        }
    }

    /// Ends a check. The next one is at `next`, unless another time is requested, and never before `earliest`.
    pub fn looked(&mut self, next: Option<Instant>, earliest: Instant) {
        let next = next.map(|next| next.max(earliest));
        self.state.timekeeper = Timekeeper { next, earliest: Some(earliest), is_asleep: false };
    }

    /// Sleeps until the next check, or until the thread `is_needed` for another reason. Only one thread may call this.
    pub fn sleep_until_look(mut self, is_needed: impl Fn(&S) -> bool) -> Self {
        loop {
            let next = self.state.timekeeper.next;
            self.state.timekeeper.is_asleep = true;
            let is_waiting =
                |state: &mut State<S>| state.timekeeper.next == next && !is_needed(&state.value);
            let Self { parking, state, lane } = self;
            let (state, is_time) = match next {
                None => (parking.timekeeper.wait_while_unpoisoned(state, is_waiting), false),
                Some(next) => wait_while_until(
                    &parking.clock,
                    WaitPlace { mutex: &parking.state, changed: &parking.timekeeper },
                    state,
                    next,
                    is_waiting,
                ),
            };
            self = Self { parking, state, lane };
            self.state.timekeeper.is_asleep = false;
            if is_time || is_needed(&self) {
                return self;
            }
        }
    }

    /// Makes the thread check if it is needed.
    pub fn wake_timekeeper(&self) {
        self.parking.timekeeper.notify_all();
    }
}

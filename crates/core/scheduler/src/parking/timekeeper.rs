//! One more thread beside those that take work: it looks at the value when a time has come that somebody named.
//!
//! Whoever adds something names a time, and wakes the thread only where that is earlier than what it sleeps until: as long
//! as times are named in their order, nobody does.

use std::time::Instant;

use super::{Locked, State};
use crate::sync::{CondvarExt, wait_while_until};

/// When the thread looks next.
#[derive(Default)]
pub(super) struct Timekeeper {
    /// `None`: not before somebody names a time.
    next: Option<Instant>,
    /// Not before this, whatever is named.
    earliest: Option<Instant>,
    is_asleep: bool,
}

impl<S> Locked<'_, S> {
    /// Has the thread look at this time, if it does not look earlier.
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

    /// The thread has looked: `next` is when it does again, unless it is told otherwise, and never before `earliest`.
    pub fn looked(&mut self, next: Option<Instant>, earliest: Instant) {
        let next = next.map(|next| next.max(earliest));
        self.state.timekeeper = Timekeeper { next, earliest: Some(earliest), is_asleep: false };
    }

    /// Sleeps until it is time to look, or `is_needed` for another reason. For one thread.
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
                    (&parking.state, &parking.timekeeper),
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

    /// Makes the thread check whether it is needed.
    pub fn wake_timekeeper(&self) {
        self.parking.timekeeper.notify_all();
    }
}

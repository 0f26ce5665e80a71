//! Puts instance threads to sleep until there is work, around a value under a lock.
//!
//! Only this module knows which threads sleep and which to wake. A thread without work *sleeps*; at most one, the
//! *leader*, waits for a batch to grow. A thread that adds work wakes at most one sleeping thread. A wake-up costs a
//! system call, so none is sent twice. A woken thread counts as woken until it has the lock again, so that other threads
//! that add work know that one is coming.
//!
//! This module does not know what work is: callers pass conditions on the value.
//!
//! Threads that take the same work share a *lane*. If work is for one thread only, each thread has a lane of its own,
//! so that the right one is woken. Of the sleepers in a lane, the one that fell asleep last is woken: its data is more
//! likely still in the processor's caches.
//!
//! A thread that adds work may do it itself in place of a sleeping thread, which sleeps on meanwhile ([`sleepers`]).

mod sleepers;
#[cfg(test)]
mod tests;
mod timekeeper;

use std::{
    ops::{Deref, DerefMut},
    time::Instant,
};

use galatea_types::Clock;

use self::{sleepers::Sleepers, timekeeper::Timekeeper};
use crate::{
    queue::GrowingBatch,
    sync::{Condvar, CondvarExt, LockExt, Mutex, MutexGuard, WaitPlace, wait_while_until},
};

/// A value under a lock, and the threads that sleep until it has something for them.
pub(crate) struct Parking<S> {
    state: Mutex<State<S>>,
    /// The place where the leader of each lane waits. There is at least one lane.
    leaders: Vec<Condvar>,
    /// The place where all others wait for a condition on the value, see [`Parking::wait_until`].
    observers: Condvar,
    /// The place where the timekeeper's thread sleeps.
    timekeeper: Condvar,
    /// The clock that decides when a wait is over.
    clock: Clock,
}

struct State<S> {
    value: S,
    sleepers: Sleepers,
    /// The leader of each lane.
    leaders: Vec<Option<LeadingThread>>,
    /// The number of callers of [`Parking::wait_until`]. With none, nobody is notified.
    observing: usize,
    timekeeper: Timekeeper,
}

struct LeadingThread {
    batch: GrowingBatch,
    is_woken: bool,
}

/// The value, locked.
pub(crate) struct Locked<'a, S> {
    parking: &'a Parking<S>,
    state: MutexGuard<'a, State<S>>,
    /// The lane whose threads wait and are woken.
    lane: usize,
}

impl<S> Parking<S> {
    /// Creates the lock around `value`. `lanes` is the number of lanes, at least one.
    pub fn new(value: S, lanes: usize, clock: Clock) -> Self {
        let lanes = lanes.max(1);
        Self {
            state: Mutex::new(State {
                value,
                sleepers: Sleepers::new(lanes),
                leaders: (0..lanes).map(|_| None).collect(),
                observing: 0,
                timekeeper: Timekeeper::default(),
            }),
            leaders: (0..lanes).map(|_| Condvar::new()).collect(),
            observers: Condvar::new(),
            timekeeper: Condvar::new(),
            clock,
        }
    }

    /// Locks the value for the first lane. No code that can panic half-way through a change may run under this lock.
    pub fn lock(&self) -> Locked<'_, S> {
        self.lock_lane(0)
    }

    /// Locks the value for another lane, by its number.
    pub fn lock_lane(&self, lane: usize) -> Locked<'_, S> {
        Locked { parking: self, state: self.state.lock_unpoisoned(), lane }
    }

    /// Returns the clock that tells when a wait is over.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Waits until `condition` holds, or until `deadline`; returns whether it holds. The condition is checked again after
    /// each [`Locked::notify_observers`].
    pub fn wait_until(&self, deadline: Instant, condition: impl Fn(&S) -> bool) -> bool {
        let mut state = self.state.lock_unpoisoned();
        state.observing += 1;
        let is_waiting = |state: &mut State<S>| !condition(&state.value);
        let place = WaitPlace { mutex: &self.state, changed: &self.observers };
        let waited = wait_while_until(&self.clock, place, state, deadline, is_waiting);
        let (mut state, is_timed_out) = waited;
        state.observing -= 1;
        !is_timed_out
    }
}

impl<'a, S> Locked<'a, S> {
    /// Returns the same lock for another lane.
    pub fn in_lane(self, lane: usize) -> Self {
        Self { lane, ..self }
    }

    /// Returns the present instant, by the clock that tells when a wait is over.
    pub fn now(&self) -> Instant {
        self.parking.clock.now()
    }

    pub fn has_leader(&self) -> bool {
        self.state.leaders[self.lane].is_some()
    }

    /// Returns true if a thread has no work, or was woken and has not looked for it yet.
    pub fn has_idle_threads(&self) -> bool {
        self.state.sleepers.idle(self.lane) > 0
    }

    /// Returns the number of such threads, including the leader.
    pub fn idle_threads(&self) -> usize {
        self.state.sleepers.idle(self.lane) + usize::from(self.has_leader())
    }

    /// Sleeps until there is work for this `thread`, until it `is_needed` for another reason, or until the `deadline`. The
    /// sleep is longer than that only while another thread does its work.
    pub fn sleep(
        mut self,
        thread: usize,
        deadline: Option<Instant>,
        is_needed: impl Fn(&S) -> bool,
    ) -> Self {
        let place = self.state.sleepers.fall_asleep(thread, self.lane);
        let Self { parking, mut state, lane } = self;
        let is_waiting =
            |state: &mut State<S>| state.sleepers.sleeps_on(thread, || is_needed(&state.value));
        state = match deadline {
            None => place.wait_while_unpoisoned(state, is_waiting),
            Some(deadline) => {
                let own = WaitPlace { mutex: &parking.state, changed: &place };
                state = wait_while_until(&parking.clock, own, state, deadline, is_waiting).0;
                place.wait_while_unpoisoned(state, |state| state.sleepers.is_replaced(thread))
            }
        };
        // The thread is awake again.
        state.sleepers.awake(thread, lane);
        Self { parking, state, lane }
    }

    /// Waits as the leader until the batch's time is over, a new request ends the wait, or the thread `is_needed` for
    /// another reason.
    pub fn lead(mut self, batch: GrowingBatch, is_needed: impl Fn(&S) -> bool) -> Self {
        self.state.leaders[self.lane] = Some(LeadingThread { batch, is_woken: false });
        let Self { parking, state, lane } = self;
        let is_waiting = |state: &mut State<S>| {
            let leader = state.leaders[lane].as_ref();
            !leader.is_none_or(|leader| leader.is_woken) && !is_needed(&state.value)
        };
        let place = WaitPlace { mutex: &parking.state, changed: &parking.leaders[lane] };
        let waited = wait_while_until(&parking.clock, place, state, batch.until, is_waiting);
        let mut state = waited.0;
        state.leaders[lane] = None;
        Self { parking, state, lane }
    }

    /// Sleeps while `condition` holds and is not woken for work. Only [`Locked::wake_sleepers`] makes the thread check again.
    pub fn sleep_while(mut self, thread: usize, condition: impl Fn(&S) -> bool) -> Self {
        let place = self.state.sleepers.place_of(thread);
        let Self { parking, state, lane } = self;
        let state = place.wait_while_unpoisoned(state, |state| condition(&state.value));
        Self { parking, state, lane }
    }

    /// Unlocks after a request was added, and wakes a thread for it if necessary.
    ///
    /// `ends_wait`: the leader, if there is one, should decide again. `one_is_enough`: one thread takes all the work it finds,
    /// and wakes another one for what it leaves.
    pub fn wake_for_new(
        mut self,
        one_is_enough: bool,
        ends_wait: impl FnOnce(&S, &GrowingBatch) -> bool,
    ) {
        let Self { parking, lane, .. } = self;
        let State { value, leaders, sleepers, .. } = &mut *self.state;
        if let Some(leader) = &mut leaders[lane] {
            if !leader.is_woken && ends_wait(value, &leader.batch) {
                leader.is_woken = true;
                drop(self);
                parking.leaders[lane].notify_one();
            }
        } else if !(one_is_enough && sleepers.woken(lane) > 0) {
            self.wake_one();
        }
    }

    /// Unlocks after a thread has taken its work, and wakes another one for the `left` requests unless enough threads are
    /// coming already.
    pub fn wake_for_rest(self, left: usize) {
        if left > self.state.sleepers.woken(self.lane) && !self.has_leader() {
            self.wake_one();
        }
    }

    /// Unlocks, and wakes one sleeping thread, if there is any.
    pub fn wake_one(mut self) {
        let woken = self.state.sleepers.wake(self.lane);
        drop(self);
        if let Some(place) = woken {
            place.notify_one();
        }
    }

    /// Wakes a thread of a lane, asleep or leader, without unlocking.
    pub fn wake_lane(&mut self, lane: usize) {
        match self.state.leaders.get_mut(lane) {
            None => {}
            Some(Some(leader)) => {
                leader.is_woken = true;
                self.parking.leaders[lane].notify_one();
            }
            Some(None) => {
                if let Some(place) = self.state.sleepers.wake(lane) {
                    place.notify_one();
                }
            }
        }
    }

    /// Unlocks, and makes every thread and every observer check the value again.
    pub fn wake_all(self) {
        self.wake_sleepers();
        let Self { parking, state, .. } = self;
        drop(state);
        parking.leaders.iter().for_each(Condvar::notify_all);
        parking.observers.notify_all();
        parking.timekeeper.notify_all();
    }

    /// Makes the sleeping threads of all lanes check if they are needed.
    pub fn wake_sleepers(&self) {
        self.state.sleepers.places().for_each(Condvar::notify_all);
    }

    /// Makes the callers of [`Parking::wait_until`] check their condition.
    pub fn notify_observers(&self) {
        if self.state.observing > 0 {
            self.parking.observers.notify_all();
        }
    }
}

impl<S> Deref for Locked<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state.value
    }
}

impl<S> DerefMut for Locked<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.state.value
    }
}

//! Instance threads that sleep until there is work, around a value under a lock.
//!
//! This is the only place that knows who sleeps and whom to wake. A thread without work *sleeps*; at most one, the
//! *leader*, waits for a batch to grow. Whoever adds work wakes at most one thread, and none where none sleeps:
//! a wake-up costs a system call, so none is sent twice. A thread that was woken counts as such until it has the
//! lock again, so that those who add more meanwhile know that somebody is on the way.
//!
//! What work is, and for whom, is not known here: conditions on the value are handed in.

#[cfg(test)]
mod tests;
mod timekeeper;

use std::{
    ops::{Deref, DerefMut},
    time::{Duration, Instant},
};

use self::timekeeper::Timekeeper;
use crate::{
    queue::GrowingBatch,
    sync::{Condvar, CondvarExt, LockExt, Mutex, MutexGuard, wait_timeout_while},
};

/// A value under a lock, and the threads that sleep until it has something for them.
pub(crate) struct Parking<S> {
    state: Mutex<State<S>>,
    /// Where threads without work sleep.
    sleepers: Condvar,
    /// Where the leader waits.
    leader: Condvar,
    /// Where everybody else waits for a condition on the value, see [`Parking::wait_for`].
    observers: Condvar,
    /// Where the thread sleeps that looks when a time has come.
    timekeeper: Condvar,
}

struct State<S> {
    value: S,
    /// Threads asleep that nobody has woken yet.
    sleeping: usize,
    /// Threads woken that have not looked at the value yet.
    woken: usize,
    leader: Option<Leader>,
    /// Callers of [`Parking::wait_for`]; while there are none, nobody is notified.
    observing: usize,
    timekeeper: Timekeeper,
}

struct Leader {
    batch: GrowingBatch,
    is_woken: bool,
}

/// The value, locked.
pub(crate) struct Locked<'a, S> {
    parking: &'a Parking<S>,
    state: MutexGuard<'a, State<S>>,
}

impl<S> Parking<S> {
    pub fn new(value: S) -> Self {
        let timekeeper = Timekeeper::default();
        let state = State { value, sleeping: 0, woken: 0, leader: None, observing: 0, timekeeper };
        Self {
            state: Mutex::new(state),
            sleepers: Condvar::new(),
            leader: Condvar::new(),
            observers: Condvar::new(),
            timekeeper: Condvar::new(),
        }
    }

    /// No code that can panic half-way through a change runs under this lock.
    pub fn lock(&self) -> Locked<'_, S> {
        Locked { parking: self, state: self.state.lock_unpoisoned() }
    }

    /// Waits until `condition` holds, for `timeout` at most; returns whether it does. The condition is looked at
    /// again after each [`Locked::notify_observers`].
    pub fn wait_for(&self, timeout: Duration, condition: impl Fn(&S) -> bool) -> bool {
        let mut state = self.state.lock_unpoisoned();
        state.observing += 1;
        let is_waiting = |state: &mut State<S>| !condition(&state.value);
        let waited = wait_timeout_while(&self.state, &self.observers, state, timeout, is_waiting);
        let (mut state, is_timed_out) = waited;
        state.observing -= 1;
        !is_timed_out
    }
}

impl<'a, S> Locked<'a, S> {
    pub fn has_leader(&self) -> bool {
        self.state.leader.is_some()
    }

    /// Whether a thread has no work, or was woken and has not looked for it yet.
    pub fn has_idle_threads(&self) -> bool {
        self.state.sleeping > 0 || self.state.woken > 0
    }

    /// Sleeps until there is work, or `is_needed` for another reason.
    pub fn sleep(mut self, is_needed: impl Fn(&S) -> bool) -> Self {
        self.state.sleeping += 1;
        let is_waiting = |state: &mut State<S>| state.woken == 0 && !is_needed(&state.value);
        let Self { parking, state } = self;
        let state = parking.sleepers.wait_while_unpoisoned(state, is_waiting);
        Self { parking, state }.awake()
    }

    /// Counts a thread that does not sleep any more. The wake-up may have been meant for another thread, which then finds
    /// itself needed as well, or sleeps on, because this one sees to what there is.
    fn awake(mut self) -> Self {
        if self.state.woken > 0 {
            self.state.woken -= 1;
        } else {
            self.state.sleeping -= 1;
        }
        self
    }

    /// [`Locked::sleep`] for `limit` at most.
    pub fn sleep_for(mut self, limit: Duration, is_needed: impl Fn(&S) -> bool) -> Self {
        self.state.sleeping += 1;
        let is_waiting = |state: &mut State<S>| state.woken == 0 && !is_needed(&state.value);
        let Self { parking, state } = self;
        let waited =
            wait_timeout_while(&parking.state, &parking.sleepers, state, limit, is_waiting);
        Self { parking, state: waited.0 }.awake()
    }

    /// Waits as the leader, until the time of the batch is over, a new request ends the wait, or the thread
    /// `is_needed` for another reason.
    pub fn lead(mut self, batch: GrowingBatch, is_needed: impl Fn(&S) -> bool) -> Self {
        self.state.leader = Some(Leader { batch, is_woken: false });
        let timeout = batch.until.saturating_duration_since(Instant::now());
        let is_waiting = |state: &mut State<S>| {
            let is_woken = state.leader.as_ref().is_none_or(|leader| leader.is_woken);
            !is_woken && !is_needed(&state.value)
        };
        let Self { parking, state } = self;
        let waited =
            wait_timeout_while(&parking.state, &parking.leader, state, timeout, is_waiting);
        let mut state = waited.0;
        state.leader = None;
        Self { parking, state }
    }

    /// Sleeps as long as `condition` holds, not to be woken for work: only [`Locked::wake_sleepers`] makes
    /// the thread look again.
    pub fn sleep_while(self, condition: impl Fn(&S) -> bool) -> Self {
        let Self { parking, state } = self;
        let is_waiting = |state: &mut State<S>| condition(&state.value);
        let state = parking.sleepers.wait_while_unpoisoned(state, is_waiting);
        Self { parking, state }
    }

    /// Unlocks after a request was added, and wakes a thread for it where that is necessary.
    ///
    /// `ends_wait`: whether the leader, if there is one, should decide again. `one_is_enough`: one thread takes
    /// all the work it finds, and wakes another one for what it leaves.
    pub fn wake_for_new(
        mut self,
        one_is_enough: bool,
        ends_wait: impl FnOnce(&S, &GrowingBatch) -> bool,
    ) {
        let State { value, leader, woken, .. } = &mut *self.state;
        if let Some(leader) = leader {
            if !leader.is_woken && ends_wait(value, &leader.batch) {
                leader.is_woken = true;
                let parking = self.unlock();
                parking.leader.notify_one();
            }
        } else if !(one_is_enough && *woken > 0) {
            self.wake_one();
        }
    }

    /// Unlocks after a thread has taken its work, and wakes another one for the `left` requests where nobody is
    /// on the way to them.
    pub fn wake_for_rest(self, left: usize) {
        if left > self.state.woken && self.state.leader.is_none() {
            self.wake_one();
        }
    }

    /// Unlocks, and wakes a thread that sleeps, if one does.
    pub fn wake_one(mut self) {
        if self.state.sleeping == 0 {
            return;
        }
        self.state.sleeping -= 1;
        self.state.woken += 1;
        self.unlock().sleepers.notify_one();
    }

    /// Unlocks, and makes every thread and every observer look at the value again.
    pub fn wake_all(self) {
        let parking = self.unlock();
        parking.sleepers.notify_all();
        parking.leader.notify_all();
        parking.observers.notify_all();
        parking.timekeeper.notify_all();
    }

    /// Makes the threads that sleep check whether they are needed.
    pub fn wake_sleepers(&self) {
        self.parking.sleepers.notify_all();
    }

    /// Makes those in [`Parking::wait_for`] check their condition.
    pub fn notify_observers(&self) {
        if self.state.observing > 0 {
            self.parking.observers.notify_all();
        }
    }

    fn unlock(self) -> &'a Parking<S> {
        self.parking
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

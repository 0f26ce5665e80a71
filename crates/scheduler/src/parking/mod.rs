//! Instance threads that sleep until there is work, around a value under a lock.
//!
//! This is the only place that knows who sleeps and whom to wake. A thread without work *sleeps*; at most one, the
//! *leader*, waits for a batch to grow. Whoever adds work wakes at most one thread, and none where none sleeps:
//! a wake-up costs a system call, so none is sent twice. A thread that was woken counts as such until it has the
//! lock again, so that those who add more meanwhile know that somebody is on the way.
//!
//! What work is, and for whom, is not known here: conditions on the value are handed in.
//!
//! Threads that take the same work share a *lane*. Where work is for one thread only, each has a lane of its own, so that
//! who adds work wakes whom it is for.

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
    /// One for each lane, of which there is at least one.
    places: Vec<Places>,
    /// Where everybody else waits for a condition on the value, see [`Parking::wait_for`].
    observers: Condvar,
    /// Where the thread sleeps that looks when a time has come.
    timekeeper: Condvar,
}

/// Where the threads of a lane wait.
#[derive(Default)]
struct Places {
    /// Where those without work sleep.
    sleepers: Condvar,
    /// Where the leader waits.
    leader: Condvar,
}

struct State<S> {
    value: S,
    lanes: Vec<Lane>,
    /// Callers of [`Parking::wait_for`]; while there are none, nobody is notified.
    observing: usize,
    timekeeper: Timekeeper,
}

/// The threads of a lane that wait.
#[derive(Default)]
struct Lane {
    /// Threads asleep that nobody has woken yet.
    sleeping: usize,
    /// Threads woken that have not looked at the value yet.
    woken: usize,
    leader: Option<Leader>,
}

struct Leader {
    batch: GrowingBatch,
    is_woken: bool,
}

/// The value, locked.
pub(crate) struct Locked<'a, S> {
    parking: &'a Parking<S>,
    state: MutexGuard<'a, State<S>>,
    /// Whose threads wait and are woken.
    lane: usize,
}

impl<S> Parking<S> {
    /// `lanes`: how many there are, at least one.
    pub fn new(value: S, lanes: usize) -> Self {
        let lanes = lanes.max(1);
        let waiting = (0..lanes).map(|_| Lane::default()).collect();
        let timekeeper = Timekeeper::default();
        Self {
            state: Mutex::new(State { value, lanes: waiting, observing: 0, timekeeper }),
            places: (0..lanes).map(|_| Places::default()).collect(),
            observers: Condvar::new(),
            timekeeper: Condvar::new(),
        }
    }

    /// No code that can panic half-way through a change runs under this lock. What is done with it concerns the first
    /// lane.
    pub fn lock(&self) -> Locked<'_, S> {
        self.lock_lane(0)
    }

    /// The same for another lane, by its number.
    pub fn lock_lane(&self, lane: usize) -> Locked<'_, S> {
        Locked { parking: self, state: self.state.lock_unpoisoned(), lane }
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
    /// The same lock, for what concerns another lane.
    pub fn in_lane(self, lane: usize) -> Self {
        Self { lane, ..self }
    }

    pub fn has_leader(&self) -> bool {
        self.waiting().leader.is_some()
    }

    /// Whether a thread has no work, or was woken and has not looked for it yet.
    pub fn has_idle_threads(&self) -> bool {
        self.waiting().sleeping > 0 || self.waiting().woken > 0
    }

    /// The threads that are so, and the leader.
    pub fn idle_threads(&self) -> usize {
        let Lane { sleeping, woken, leader } = self.waiting();
        sleeping + woken + usize::from(leader.is_some())
    }

    /// Sleeps until there is work, or `is_needed` for another reason.
    pub fn sleep(mut self, is_needed: impl Fn(&S) -> bool) -> Self {
        self.waiting_mut().sleeping += 1;
        let Self { parking, state, lane } = self;
        let is_waiting =
            |state: &mut State<S>| state.lanes[lane].woken == 0 && !is_needed(&state.value);
        let state = parking.places[lane].sleepers.wait_while_unpoisoned(state, is_waiting);
        Self { parking, state, lane }.awake()
    }

    /// Counts a thread that does not sleep any more. The wake-up may have been meant for another thread, which then finds
    /// itself needed as well, or sleeps on, because this one sees to what there is.
    fn awake(mut self) -> Self {
        let waiting = self.waiting_mut();
        if waiting.woken > 0 {
            waiting.woken -= 1;
        } else {
            waiting.sleeping -= 1;
        }
        self
    }

    /// [`Locked::sleep`] for `limit` at most.
    pub fn sleep_for(mut self, limit: Duration, is_needed: impl Fn(&S) -> bool) -> Self {
        self.waiting_mut().sleeping += 1;
        let Self { parking, state, lane } = self;
        let is_waiting =
            |state: &mut State<S>| state.lanes[lane].woken == 0 && !is_needed(&state.value);
        let sleepers = &parking.places[lane].sleepers;
        let waited = wait_timeout_while(&parking.state, sleepers, state, limit, is_waiting);
        Self { parking, state: waited.0, lane }.awake()
    }

    /// Waits as the leader, until the time of the batch is over, a new request ends the wait, or the thread
    /// `is_needed` for another reason.
    pub fn lead(mut self, batch: GrowingBatch, is_needed: impl Fn(&S) -> bool) -> Self {
        self.waiting_mut().leader = Some(Leader { batch, is_woken: false });
        let timeout = batch.until.saturating_duration_since(Instant::now());
        let Self { parking, state, lane } = self;
        let is_waiting = |state: &mut State<S>| {
            let leader = state.lanes[lane].leader.as_ref();
            !leader.is_none_or(|leader| leader.is_woken) && !is_needed(&state.value)
        };
        let leader = &parking.places[lane].leader;
        let waited = wait_timeout_while(&parking.state, leader, state, timeout, is_waiting);
        let mut state = waited.0;
        state.lanes[lane].leader = None;
        Self { parking, state, lane }
    }

    /// Sleeps as long as `condition` holds, not to be woken for work: only [`Locked::wake_sleepers`] makes
    /// the thread look again.
    pub fn sleep_while(self, condition: impl Fn(&S) -> bool) -> Self {
        let Self { parking, state, lane } = self;
        let is_waiting = |state: &mut State<S>| condition(&state.value);
        let state = parking.places[lane].sleepers.wait_while_unpoisoned(state, is_waiting);
        Self { parking, state, lane }
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
        let lane = self.lane;
        let State { value, lanes, .. } = &mut *self.state;
        let Lane { leader, woken, .. } = &mut lanes[lane];
        if let Some(leader) = leader {
            if !leader.is_woken && ends_wait(value, &leader.batch) {
                leader.is_woken = true;
                self.unlock().leader.notify_one();
            }
        } else if !(one_is_enough && *woken > 0) {
            self.wake_one();
        }
    }

    /// Unlocks after a thread has taken its work, and wakes another one for the `left` requests where nobody is
    /// on the way to them.
    pub fn wake_for_rest(self, left: usize) {
        if left > self.waiting().woken && !self.has_leader() {
            self.wake_one();
        }
    }

    /// Unlocks, and wakes a thread that sleeps, if one does.
    pub fn wake_one(mut self) {
        let waiting = self.waiting_mut();
        if waiting.sleeping == 0 {
            return;
        }
        waiting.sleeping -= 1;
        waiting.woken += 1;
        self.unlock().sleepers.notify_one();
    }

    /// Wakes a thread of a lane, be it asleep or the leader, without unlocking.
    pub fn wake_lane(&mut self, lane: usize) {
        let Some(waiting) = self.state.lanes.get_mut(lane) else { return };
        let places = &self.parking.places[lane];
        if let Some(leader) = &mut waiting.leader {
            leader.is_woken = true;
            places.leader.notify_one();
        } else if waiting.sleeping > 0 {
            waiting.sleeping -= 1;
            waiting.woken += 1;
            places.sleepers.notify_one();
        }
    }

    /// Unlocks, and makes every thread and every observer look at the value again.
    pub fn wake_all(self) {
        let Self { parking, state, .. } = self;
        drop(state);
        for place in &parking.places {
            place.sleepers.notify_all();
            place.leader.notify_all();
        }
        parking.observers.notify_all();
        parking.timekeeper.notify_all();
    }

    /// Makes the threads that sleep, in any lane, check whether they are needed.
    pub fn wake_sleepers(&self) {
        self.parking.places.iter().for_each(|place| place.sleepers.notify_all());
    }

    /// Makes those in [`Parking::wait_for`] check their condition.
    pub fn notify_observers(&self) {
        if self.state.observing > 0 {
            self.parking.observers.notify_all();
        }
    }

    fn waiting(&self) -> &Lane {
        &self.state.lanes[self.lane]
    }

    fn waiting_mut(&mut self) -> &mut Lane {
        &mut self.state.lanes[self.lane]
    }

    fn unlock(self) -> &'a Places {
        &self.parking.places[self.lane]
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

//! The queue of waiting requests that instance threads pull from: [`Backlog`] decides what is next,
//! [`Parking`] who sleeps until then.
//!
//! There is no batcher thread: threads pull and form their batch themselves. A thread whose instance broke takes
//! no work; what it was woken for goes to another one. The queue also knows which of its instances work, because
//! what is queued while none does must be answered.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use galatea_config::ModelConfig;
use galatea_types::Error;

use crate::{
    instance::InstanceHealth,
    parking::{Locked, Parking},
    queue::{Backlog, Decision, DropReason, Queued},
    queued_request::QueuedRequest,
};

/// Requests that wait for a group of instances, and the threads of those instances.
pub(crate) struct RequestQueue<T = QueuedRequest> {
    parking: Parking<State<T>>,
    /// Decisions depend on the time; else the clock is not read.
    needs_clock: bool,
    joins_requests: bool,
    /// The time where nothing depends on it.
    epoch: Instant,
}

struct State<T> {
    backlog: Backlog<T>,
    /// Requests taken that have no final response yet, streams included.
    executing: usize,
    is_closed: bool,
    /// Threads that have not ended.
    live_threads: usize,
    health: InstanceHealth,
}

/// What an instance thread is to do.
pub(crate) enum Work<T> {
    Batch(Vec<T>),
    /// Requests that are not executed, each to be answered.
    Dropped(Vec<(T, DropReason)>),
    /// The thread's instance does not work any more: it must be restarted.
    Restart(Error),
    /// The queue is closed and all requests are answered.
    End,
}

/// Why a request was not accepted.
#[derive(Debug)]
pub(crate) enum Refusal {
    Closed,
    Full,
    NoWorkingInstance(Error),
}

impl<T: Queued> RequestQueue<T> {
    /// `hold_until_queued`: nothing is executed until this many requests wait.
    pub fn new(config: &ModelConfig, instances: usize, hold_until_queued: usize) -> Self {
        let backlog = Backlog::from_config(config, hold_until_queued);
        Self {
            needs_clock: backlog.needs_clock(),
            joins_requests: backlog.joins_requests(),
            parking: Parking::new(State {
                backlog,
                executing: 0,
                is_closed: false,
                live_threads: instances,
                health: InstanceHealth::new(instances),
            }),
            epoch: Instant::now(),
        }
    }

    /// Accepts a request, or gives it back with the reason why not.
    pub fn push(&self, request: T) -> Result<(), (T, Refusal)> {
        let mut state = self.parking.lock();
        if state.is_closed {
            return Err((request, Refusal::Closed));
        }
        if let Some(outage) = state.health.outage().cloned() {
            return Err((request, Refusal::NoWorkingInstance(outage)));
        }
        let fits = !state.has_leader() || state.backlog.fits_next_batch(&request);
        let expires_at = match state.backlog.push(request) {
            Ok(expires_at) => expires_at,
            Err(request) => return Err((request, Refusal::Full)),
        };
        if !state.is_held() {
            state.wake_for_new(self.joins_requests, |state, batch| {
                batch.is_ended_by(state.backlog.item_count(), expires_at, fits)
            });
        }
        Ok(())
    }

    /// Waits for something to do for instance `index`, which likes to have `depth` requests at once.
    ///
    /// `done`: how many requests this thread took before have their final response now. [`Work::End`] comes only
    /// when all requests have, so that no instance is dropped while a stream of it is open.
    pub fn pull(&self, index: usize, depth: usize, done: usize) -> Work<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        loop {
            if let Some(reason) = state.health.defect(index).cloned() {
                let left = state.backlog.len();
                state.wake_for_rest(left);
                return Work::Restart(reason);
            }
            let decision = self.decide(&mut state);
            let dropped = state.backlog.take_dropped();
            if !dropped.is_empty() {
                state.executing += dropped.len();
                return Work::Dropped(dropped);
            }
            // The decision is only a value. A permit to execute (rate limiter) belongs here: without one the thread
            // would sleep, and the requests stay in the backlog.
            match decision {
                Decision::Take(count) => return Work::Batch(take(state, count, depth)),
                Decision::Empty if state.is_closed && state.executing == 0 => return Work::End,
                Decision::Empty if state.is_closed => {
                    state = state.sleep_while(|s| s.executing > 0 && !s.is_broken(index));
                }
                Decision::Wait(batch) if !state.has_leader() => {
                    state = state.lead(batch, |s| s.is_closed || s.is_broken(index));
                }
                Decision::Wait(_) | Decision::Empty => {
                    state = state.sleep(|s| s.is_closed || s.is_broken(index));
                }
            }
        }
    }

    /// Reports that `done` requests have their final response, outside of [`RequestQueue::pull`].
    pub fn finish(&self, done: usize) {
        self.parking.lock().finish(done);
    }

    /// Takes requests back that were pulled but not begun: they come first again. Returns how many.
    pub fn put_back(&self, requests: Vec<T>) -> usize {
        let count = requests.len();
        if count > 0 {
            let mut state = self.parking.lock();
            state.executing -= count;
            requests.into_iter().rev().for_each(|request| state.backlog.push_front(request));
            state.wake_one();
        }
        count
    }

    /// Gives back the requests that nobody waits for, which count as taken until [`RequestQueue::finish`]. A thread
    /// that pulls finds them by itself when it comes to them; this is for the time until then.
    pub fn take_abandoned(&self) -> Vec<T> {
        let mut state = self.parking.lock();
        let abandoned = state.backlog.take_abandoned();
        state.executing += abandoned.len();
        abandoned
    }

    /// Requests that have no final response yet.
    pub fn in_flight(&self) -> usize {
        self.parking.lock().in_flight()
    }

    pub fn has_queued(&self) -> bool {
        self.parking.lock().backlog.len() > 0
    }

    /// Refuses requests from now on. Those that are queued are executed as ever.
    pub fn close(&self) {
        let mut state = self.parking.lock();
        state.is_closed = true;
        state.wake_all();
    }

    /// Waits; true as soon as the queue is closed.
    pub fn is_closed_within(&self, timeout: Duration) -> bool {
        self.parking.wait_for(timeout, |state| state.is_closed)
    }

    /// Waits until no request is in flight, without closing; false when that is not so by `deadline`.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.parking.wait_for(left_until(deadline), |state| state.in_flight() == 0)
    }

    /// Waits until all threads and all streams have ended; false when they have not by `deadline`.
    pub fn wait_for_end(&self, deadline: Instant) -> bool {
        let has_ended = |state: &State<T>| state.live_threads == 0 && state.executing == 0;
        self.parking.wait_for(left_until(deadline), has_ended)
    }

    /// A thread of an instance has ended, or could not be started.
    pub fn thread_ended(&self) {
        let mut state = self.parking.lock();
        state.live_threads -= 1;
        state.notify_observers();
    }

    /// See [`InstanceHealth::begin`].
    pub fn instance_begins(&self, index: usize) -> u64 {
        self.parking.lock().health.begin(index)
    }

    /// See [`InstanceHealth::started`].
    pub fn instance_started(&self, index: usize) {
        self.parking.lock().health.started(index);
    }

    /// See [`InstanceHealth::break_down`]. Wakes the instance's thread, whatever it waits for.
    pub fn break_instance(&self, index: usize, generation: u64, reason: Error) -> bool {
        let mut state = self.parking.lock();
        let is_news = state.health.break_down(index, generation, reason);
        if is_news {
            state.wake_all();
        }
        is_news
    }

    /// The same for whatever instance the calling thread has now.
    pub fn break_current_instance(&self, index: usize, reason: Error) {
        let mut state = self.parking.lock();
        let generation = state.health.generation(index);
        state.health.break_down(index, generation, reason);
    }

    /// Nobody is to wait for this instance until it works again. When there is no other to wait for, the
    /// waiting requests are given back: nobody would execute them.
    pub fn give_up_instance(&self, index: usize, reason: &Error) -> Vec<T> {
        let mut state = self.parking.lock();
        if !state.health.give_up(index, reason) {
            return Vec::new();
        }
        let waiting = state.backlog.len();
        state.take(waiting)
    }

    pub fn has_working_instance(&self) -> bool {
        self.parking.lock().health.has_working_instance()
    }

    fn decide(&self, state: &mut State<T>) -> Decision {
        let now = if self.needs_clock { Instant::now() } else { self.epoch };
        state.backlog.decide(now, state.is_closed)
    }
}

/// Takes what was decided, and unlocks.
fn take<T: Queued>(mut state: Locked<'_, State<T>>, count: usize, depth: usize) -> Vec<T> {
    let count = if depth > 1 { state.fair_share(depth) } else { count };
    let requests = state.take(count);
    let left = state.backlog.len();
    state.wake_for_rest(left);
    requests
}

impl<T: Queued> Locked<'_, State<T>> {
    fn finish(&mut self, done: usize) {
        self.executing -= done;
        if done == 0 || self.executing > 0 {
            return;
        }
        self.notify_observers();
        if self.is_closed {
            self.wake_sleepers();
        }
    }
}

impl<T: Queued> State<T> {
    fn in_flight(&self) -> usize {
        self.backlog.len() + self.executing
    }

    fn is_broken(&self, index: usize) -> bool {
        self.health.defect(index).is_some()
    }

    fn is_held(&mut self) -> bool {
        self.backlog.is_held(self.is_closed)
    }

    fn take(&mut self, count: usize) -> Vec<T> {
        let requests = self.backlog.take(count);
        self.executing += requests.len();
        requests
    }

    /// How many requests an instance takes that likes to have `depth` at once, to execute each alone: no
    /// more than leaves as many for each of the others.
    fn fair_share(&self, depth: usize) -> usize {
        let share = self.backlog.len().div_ceil(self.health.working_count().max(1));
        self.backlog.count_wanted(share.min(depth)).max(1)
    }
}

fn left_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

//! The queue of waiting requests that instance threads pull from: [`Backlog`] decides what is next,
//! [`Parking`] who sleeps until then.
//!
//! There is no batcher thread: threads pull and form their batch themselves. A thread whose instance broke takes
//! no work; what it was woken for goes to another one. The queue also knows which of its instances work, because
//! what is queued while none does must be answered.
//!
//! Where each request is executed alone, a busy instance may be handed the next ones ahead. Such a request still waits
//! ([`RequestsHandedOver`]): none is handed over while an instance is free, and one that becomes free takes it back.

mod expiry;
mod handed_over;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use galatea_config::ModelConfig;
use galatea_types::Error;

pub(crate) use self::handed_over::HandedOver;
use self::handed_over::{Back, RequestsHandedOver};
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
    /// How long batches wait is learned.
    learns_delay: bool,
    /// The time where nothing depends on it.
    epoch: Instant,
}

struct State<T> {
    backlog: Backlog<T>,
    handed_over: RequestsHandedOver<T>,
    /// Requests taken that have no final response yet, streams included.
    executing: usize,
    /// Requests that have had their final response.
    complete: u64,
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
    /// The instance is not one of the queue's any more: its thread ends as soon as its streams have.
    Retire,
    /// The queue is closed and all requests are answered.
    End,
}

impl<T: Queued> Work<T> {
    /// A request that was taken back.
    fn of(request: T) -> Self {
        match request.is_abandoned() {
            true => Self::Dropped(vec![(request, DropReason::Abandoned)]),
            false => Self::Batch(vec![request]),
        }
    }
}

/// What an instance goes on with that has executed a request.
pub(crate) struct Next<T> {
    /// The first request that was handed over to it, with its number: it has begun with that.
    pub begun: Option<(usize, T)>,
    /// To be handed over to it, in this order.
    pub ahead: Vec<T>,
}

/// When this many requests for each instance became complete since one has begun with its last, what waits there goes to
/// others, first in first out. Where all take as long, there is one for each.
const MAX_OVERTAKEN: u64 = 2;

/// How soon a free instance looks again for what waits in another that has not read what comes before it.
const UNREAD_PAUSE: Duration = Duration::from_millis(1);

/// No instance of the queue works, or is expected to.
pub(crate) struct Outage<T> {
    pub reason: Error,
    /// The requests that waited for one, to be answered.
    pub unserved: Vec<T>,
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
            learns_delay: backlog.learns_delay(),
            parking: Parking::new(State {
                backlog,
                handed_over: RequestsHandedOver::default(),
                executing: 0,
                complete: 0,
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
        let was_held = state.is_held();
        let expires_at = match state.backlog.push(request) {
            Ok(expires_at) => expires_at,
            Err(request) => return Err((request, Refusal::Full)),
        };
        if !state.is_held() {
            state.expect_expiry(expires_at, was_held);
            state.wake_for_new(self.joins_requests, |state, batch| {
                batch.is_ended_by(state.backlog.item_count(), expires_at, fits)
            });
        }
        Ok(())
    }

    /// Waits for something to do for instance `index`.
    ///
    /// `done`: how many requests this thread took before have their final response now. [`Work::End`] comes only
    /// when all requests have, so that no instance is dropped while a stream of it is open. `rest` is called before the
    /// thread sleeps.
    pub fn pull(&self, index: usize, done: usize, rest: impl Fn()) -> Work<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        state.note_end(index);
        loop {
            if let Some(work) = state.called_off(index) {
                let left = state.backlog.len();
                state.wake_for_rest(left);
                return work;
            }
            if let Some(request) = state.take_overtaken_back() {
                return Work::of(request);
            }
            let decision = self.decide(&mut state);
            let dropped = state.backlog.take_dropped();
            if !dropped.is_empty() {
                state.executing += dropped.len();
                return Work::Dropped(dropped);
            }
            if let Decision::Empty = decision {
                match state.handed_over.take_oldest_back() {
                    Back::Request(request) => return Work::of(request),
                    Back::Nothing => {}
                    Back::NotYet => {
                        rest();
                        state = state.sleep_for(UNREAD_PAUSE, |s| s.is_called_off(index));
                        continue;
                    }
                }
            }
            if !matches!(decision, Decision::Take(_)) {
                rest();
            }
            // The decision is only a value. A permit to execute (rate limiter) belongs here: without one the thread
            // would sleep, and the requests stay in the backlog.
            match decision {
                Decision::Take(count) => return Work::Batch(take(state, index, count)),
                Decision::Empty if state.is_closed && state.executing == 0 => return Work::End,
                Decision::Empty if state.is_closed => {
                    state = state.sleep_while(|s| s.executing > 0 && !s.is_called_off(index));
                }
                Decision::Wait(batch) if !state.has_leader() => {
                    state = state.lead(batch, |s| s.is_closed || s.is_called_off(index));
                }
                Decision::Wait(_) | Decision::Empty => {
                    state = state.sleep(|s| s.is_closed || s.is_called_off(index));
                }
            }
        }
    }

    /// The instance has executed what it had. Told before it answers: whoever has an answer may be back with the next
    /// request at once, and is not to be taken for one more.
    pub fn about_to_answer(&self, index: usize) {
        if self.learns_delay {
            self.parking.lock().note_end(index);
        }
    }

    /// Requests to be handed over to instance `index`, which executes one: `room` of them at most. `done`: as for
    /// [`RequestQueue::pull`].
    pub fn next_ahead(&self, index: usize, done: usize, room: usize) -> Vec<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        self.ahead(&mut state, index, room)
    }

    /// The same when it has executed a request while others were handed over to it: with the first of those it has begun,
    /// if they were not taken back. `room`: how many more may wait in it; `None`: it executes none of them. What it has not
    /// begun with is queued again then.
    pub fn next(&self, index: usize, done: usize, room: Option<usize>) -> Next<T> {
        let mut state = self.parking.lock();
        state.finish(done);
        let room = room.filter(|_| !state.is_called_off(index));
        let complete = state.complete;
        if let Some(room) = room {
            let begun = state.handed_over.begin(index, complete);
            let room = if begun.is_some() { room } else { 0 };
            return Next { begun, ahead: self.ahead(&mut state, index, room) };
        }
        let taken = state.handed_over.take_all_back_from(index);
        let begun = state.handed_over.begin(index, complete);
        state.queue_again(taken);
        Next { begun, ahead: Vec::new() }
    }

    /// The request waits in instance `index` from now on.
    pub fn handed_over(&self, index: usize, handed_over: HandedOver<T>) {
        let mut state = self.parking.lock();
        let complete = state.complete;
        if let Some(request) = state.handed_over.add(index, handed_over, complete) {
            return state.queue_again(vec![request]);
        }
        // An instance that became free meanwhile takes it.
        state.wake_one();
    }

    /// Requests to be handed over to instance `index`: none while another instance is free, which it also is when it
    /// waits for the end of a closed queue, and no more than its share of all that wait.
    fn ahead(&self, state: &mut Locked<'_, State<T>>, index: usize, room: usize) -> Vec<T> {
        if room == 0 || state.has_idle_threads() || state.is_closed || state.is_called_off(index) {
            return Vec::new();
        }
        let (waiting, own) = state.handed_over.count(index);
        let working = state.health.working_count().max(1);
        let share = (state.backlog.len() + waiting).div_ceil(working).max(1);
        let next = |_| self.one_ahead(state);
        (0..room.min(share.saturating_sub(own))).map_while(next).collect()
    }

    fn one_ahead(&self, state: &mut Locked<'_, State<T>>) -> Option<T> {
        if let Some(request) = state.take_overtaken_back() {
            return Some(request);
        }
        // The rest is for those who pull.
        if !state.backlog.is_front_wanted() {
            return None;
        }
        match self.decide(state) {
            Decision::Take(_) => state.take(1).pop(),
            _ => None,
        }
    }

    /// Reports that `done` requests have their final response, outside of [`RequestQueue::pull`].
    pub fn finish(&self, done: usize) {
        self.parking.lock().finish(done);
    }

    /// Takes requests back that could not be handed over: they come first again.
    pub fn put_back(&self, requests: Vec<T>) {
        self.parking.lock().queue_again(requests);
    }

    /// Gives back the requests that nobody waits for, which count as taken until [`RequestQueue::finish`]. A thread
    /// that pulls finds them by itself when it comes to them; this is for the time until then.
    pub fn take_abandoned(&self) -> Vec<T> {
        let mut state = self.parking.lock();
        let mut abandoned = state.backlog.take_abandoned();
        state.executing += abandoned.len();
        // These count as taken already. What waits behind one in an instance had to be taken with it.
        let (taken, others) = state.handed_over.take_back_all(Queued::is_abandoned);
        abandoned.extend(taken);
        state.queue_again(others);
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
        if state.is_held() {
            state.look_by(Instant::now());
        }
        state.is_closed = true;
        state.wake_all();
    }

    /// Waits; true as soon as the queue is closed or the instance retired.
    pub fn is_closed_within(&self, index: usize, timeout: Duration) -> bool {
        self.parking.wait_for(timeout, |s| s.is_closed || s.health.is_retired(index))
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

    /// Adds an instance, whose thread is about to be started. Returns its number.
    pub fn add_instance(&self) -> usize {
        let mut state = self.parking.lock();
        state.live_threads += 1;
        state.health.add()
    }

    /// The instances execute no more requests: their threads end with what they have in hand.
    pub fn retire_instances(&self, indices: &[usize]) -> Option<Outage<T>> {
        let mut state = self.parking.lock();
        indices.iter().for_each(|&index| state.health.retire(index));
        let reason = state.health.outage().cloned();
        let outage = reason.map(|reason| {
            let waiting = state.backlog.len();
            Outage { reason, unserved: state.take(waiting) }
        });
        state.wake_all();
        outage
    }

    pub fn is_retired(&self, index: usize) -> bool {
        self.parking.lock().health.is_retired(index)
    }

    /// Waits until the thread of a retired instance has ended; false when it has not by `deadline`.
    pub fn wait_until_gone(&self, index: usize, deadline: Instant) -> bool {
        self.parking.wait_for(left_until(deadline), |state| state.health.is_gone(index))
    }

    /// A thread of an instance has ended, or could not be started.
    pub fn thread_ended(&self, index: usize) {
        let mut state = self.parking.lock();
        state.live_threads -= 1;
        state.health.gone(index);
        state.note_end(index);
        state.notify_observers();
        if state.live_threads == 0 {
            state.wake_timekeeper();
        }
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

    /// How long batches waited lately for more requests, where that is learned.
    pub fn learned_delay(&self) -> Option<Duration> {
        self.parking.lock().backlog.learned_delay()
    }

    /// How many instances there are, and how many of them work.
    pub fn instance_counts(&self) -> (usize, usize) {
        let state = self.parking.lock();
        (state.health.member_count(), state.health.working_count())
    }

    /// Whether requests have another instance than this one to go to, and nobody waits for this one to end.
    pub fn can_do_without(&self, index: usize) -> bool {
        let state = self.parking.lock();
        !state.is_closed && !state.is_called_off(index) && state.health.working_count() > 1
    }

    fn decide(&self, state: &mut Locked<'_, State<T>>) -> Decision {
        let now = if self.needs_clock { Instant::now() } else { self.epoch };
        let (idle, is_closed) = (state.idle_threads(), state.is_closed);
        state.backlog.decide_beside(idle, now, is_closed)
    }
}

/// Takes what was decided for instance `index`, and unlocks.
fn take<T: Queued>(mut state: Locked<'_, State<T>>, index: usize, count: usize) -> Vec<T> {
    let requests = state.take(count);
    if state.backlog.learns_delay() {
        state.backlog.begins(index, &requests, Instant::now());
    }
    let left = state.backlog.len();
    state.wake_for_rest(left);
    requests
}

impl<T: Queued> Locked<'_, State<T>> {
    /// Unlocks after requests that were taken have come first again, in their order.
    fn queue_again(mut self, requests: Vec<T>) {
        if requests.is_empty() {
            return;
        }
        for request in requests.into_iter().rev() {
            self.executing -= 1;
            self.backlog.push_front(request);
        }
        self.wake_one();
    }

    fn finish(&mut self, done: usize) {
        self.executing -= done;
        self.complete += done as u64;
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

    /// Whether the instance is to execute nothing more: it broke, or is not one of the queue's any more.
    fn is_called_off(&self, index: usize) -> bool {
        self.health.is_retired(index) || self.health.defect(index).is_some()
    }

    /// What the thread of such an instance is to do.
    fn called_off(&self, index: usize) -> Option<Work<T>> {
        match self.health.is_retired(index) {
            true => Some(Work::Retire),
            false => self.health.defect(index).cloned().map(Work::Restart),
        }
    }

    /// The instance executes nothing from now on.
    fn note_end(&mut self, index: usize) {
        if self.backlog.learns_delay() {
            self.backlog.ended(index, Instant::now());
        }
    }

    fn is_held(&mut self) -> bool {
        self.backlog.is_held(self.is_closed)
    }

    /// A request that waits in an instance although it would have been its turn in any other.
    fn take_overtaken_back(&mut self) -> Option<T> {
        let limit = MAX_OVERTAKEN * self.health.working_count() as u64;
        match self.handed_over.take_overtaken_back(self.complete, limit) {
            Back::Request(request) => Some(request),
            Back::Nothing | Back::NotYet => None,
        }
    }

    fn take(&mut self, count: usize) -> Vec<T> {
        let requests = self.backlog.take(count);
        self.executing += requests.len();
        requests
    }
}

fn left_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

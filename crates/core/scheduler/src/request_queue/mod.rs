//! The queue of waiting requests that instance threads pull from: what waits ([`Waiting`]) decides what is next,
//! [`Parking`] who sleeps until then.
//!
//! There is no batcher thread: threads pull and form their batch themselves. A thread whose instance broke takes
//! no work; what it was woken for goes to another one. The queue also knows which of its instances work, because
//! what is queued while none does must be answered.
//!
//! Where each request is executed alone, a busy instance may be handed the next ones ahead. Such a request still waits
//! ([`PrefetchedRequests`]): none is handed over while an instance is free, and one that becomes free takes it back.

mod ahead;
mod expiry;
mod handed_over;
mod health;
mod in_place;
mod instances;
mod learned_delay;
mod permits;
mod sequences;
#[cfg(test)]
mod tests;
mod waiting;

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use galatea_config::ModelConfig;
use galatea_types::{Clock, CorrelationId, Error};

pub(crate) use self::{
    handed_over::PrefetchedRequest, in_place::SubmitterRole, waiting::NotExecuted,
};
use self::{
    handed_over::{PrefetchedRequests, TakeBack},
    health::InstanceHealth,
    in_place::InPlaceTurns,
    waiting::Waiting,
};
use crate::{
    parking::{Locked, Parking},
    queue::{Backlog, Decision, DropReason},
    queued_request::QueuedRequest,
    rate_limiter::Permits,
    sequence::{SequenceRefusal, SequenceRequest, Step, StepEnd, TestHold},
};

/// Requests that wait for a group of instances, and the threads of those instances.
pub(crate) struct RequestQueue<T: SequenceRequest = QueuedRequest> {
    parking: Parking<State<T>>,
    /// Decisions depend on the time; else the clock is not read.
    needs_clock: bool,
    joins_requests: bool,
    /// How long batches wait is learned.
    learns_delay: bool,
    /// Each instance has work that no other may do.
    is_per_instance: bool,
    /// The time where nothing depends on it.
    epoch: Instant,
    /// Without a rate limiter everybody may execute.
    permits: Option<Permits>,
}

struct State<T: SequenceRequest> {
    waiting: Waiting<T>,
    handed_over: PrefetchedRequests<T>,
    turns: InPlaceTurns,
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
pub(crate) enum Work<T: SequenceRequest> {
    Batch(Vec<T>),
    /// Requests of sequences, in the order of their rows; `None`: a row without a request.
    Steps(Vec<Option<Step<T, T::States>>>),
    /// Requests that are not executed, each to be answered.
    Dropped(Vec<(T, NotExecuted)>),
    /// The thread's instance does not work any more: it must be restarted.
    Restart(Error),
    /// The instance is not one of the queue's any more: its thread ends as soon as its streams have.
    Retire,
    /// The queue is closed and all requests are answered.
    End,
}

impl<T: SequenceRequest> Work<T> {
    /// A request that was taken back.
    fn of(request: T) -> Self {
        match request.is_abandoned() {
            true => {
                let reason = NotExecuted::Request(DropReason::Abandoned);
                Self::Dropped(vec![(request, reason)])
            }
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
pub(crate) struct NoInstances<T> {
    pub reason: Error,
    /// The requests that waited for one, to be answered.
    pub unserved: Vec<T>,
}

/// A request was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// It begins a sequence of this name although one that has not ended has it.
    pub restarts: Option<CorrelationId>,
    /// The caller is to execute what waits, in the place of the thread of this instance.
    pub turn: Option<usize>,
}

/// Why a request was not accepted.
#[derive(Debug)]
pub(crate) enum Refusal {
    Closed,
    Full,
    NoWorkingInstance(Error),
    OfSequence(SequenceRefusal),
}

/// What an instance thread reports when it looks for work: what it took before that has its final response now.
pub(crate) struct FinishedWork<T: SequenceRequest> {
    /// Requests.
    pub requests: usize,
    /// Of those that were steps of sequences.
    pub steps: Vec<StepEnd<T, T::States>>,
}

impl<T: SequenceRequest> From<usize> for FinishedWork<T> {
    /// Requests that were no steps of sequences.
    fn from(requests: usize) -> Self {
        Self { requests, steps: Vec::new() }
    }
}

impl<T: SequenceRequest> RequestQueue<T> {
    /// `hold`: nothing is executed until so many requests wait.
    pub fn new(config: &ModelConfig, instances: usize, hold: TestHold, clock: Clock) -> Self {
        let mut waiting = Waiting::from_config(config, instances, hold);
        let backlog = waiting.requests().map(|backlog| &*backlog);
        let is_per_instance = backlog.is_none();
        let lanes = if is_per_instance { instances } else { 1 };
        let epoch = clock.now();
        let learns_delay = backlog.is_some_and(Backlog::learns_delay);
        Self {
            needs_clock: backlog.is_none_or(Backlog::needs_clock) || learns_delay,
            joins_requests: backlog.is_none_or(Backlog::joins_requests),
            learns_delay,
            is_per_instance,
            parking: Parking::new(
                State {
                    waiting,
                    handed_over: PrefetchedRequests::default(),
                    turns: InPlaceTurns::default(),
                    executing: 0,
                    complete: 0,
                    is_closed: false,
                    live_threads: instances,
                    health: InstanceHealth::new(instances),
                },
                lanes,
                clock,
            ),
            epoch,
            permits: None,
        }
    }

    /// [`RequestQueue::push_by`] one that executes nothing.
    #[cfg(test)]
    pub fn push(&self, request: T) -> Result<Accepted, (T, Refusal)> {
        self.push_by(SubmitterRole::Leaves, request)
    }

    /// Accepts a request, or gives it back with the reason why not.
    pub fn push_by(&self, caller: SubmitterRole, request: T) -> Result<Accepted, (T, Refusal)> {
        let mut state = self.parking.lock();
        if state.is_closed {
            return Err((request, Refusal::Closed));
        }
        if let Some(outage) = state.health.outage().cloned() {
            return Err((request, Refusal::NoWorkingInstance(outage)));
        }
        let has_leader = state.has_leader();
        let was_held = state.is_held();
        let Some(backlog) = state.waiting.requests() else {
            return self.push_of_sequence(state, request);
        };
        let fits = !has_leader || backlog.fits_next_batch(&request);
        let expires_at = match backlog.push(request) {
            Ok(expires_at) => expires_at,
            Err(request) => return Err((request, Refusal::Full)),
        };
        let mut turn = None;
        if !state.is_held() {
            state.expect_expiry(expires_at, was_held);
            turn = state.begin_turn(caller);
            if turn.is_none() && caller != SubmitterRole::HasTurn {
                state.wake_for_new(self.joins_requests, |state, batch| {
                    batch.is_ended_by(state.waiting.item_count(0), expires_at, fits)
                });
            }
        }
        Ok(Accepted { restarts: None, turn })
    }

    /// Waits for something to do for instance `index`.
    ///
    /// [`Work::End`] comes only when all requests have their final response, so that no instance is dropped while a stream of it is open. `rest` is called before the
    /// thread sleeps.
    pub fn pull(&self, index: usize, done: impl Into<FinishedWork<T>>, rest: impl Fn()) -> Work<T> {
        let done = done.into();
        let mut state = self.lock_for(index);
        state.finish(done.requests);
        state.finish_steps(index, done.steps);
        self.note_end(&mut state, index);
        self.looks_for_work(index);
        loop {
            let dropped = state.take_dropped();
            if !dropped.is_empty() {
                return Work::Dropped(dropped);
            }
            if let Some(work) = state.called_off(index) {
                self.leave(state, index);
                return work;
            }
            if let Some(request) = state.take_overtaken_back() {
                return Work::of(request);
            }
            let decision = self.decide(&mut state, index);
            let dropped = state.take_dropped();
            if !dropped.is_empty() {
                return Work::Dropped(dropped);
            }
            state.wake_fed(index);
            if let Decision::Empty = decision {
                match state.handed_over.take_oldest_back() {
                    TakeBack::Request(request) => return Work::of(request),
                    TakeBack::Nothing => {}
                    TakeBack::NotYet => {
                        rest();
                        // What comes before it may have been read then.
                        let look = self.parking.clock().after(UNREAD_PAUSE);
                        state = state.sleep(index, Some(look), |s| s.is_called_off(index));
                        continue;
                    }
                }
            }
            if !matches!(decision, Decision::Take(_)) {
                rest();
            }
            // The decision is only a value: without a permit the thread sleeps, and the requests stay in the backlog.
            state = match self.admit(state, index, &decision, &rest) {
                ControlFlow::Continue(state) => state,
                ControlFlow::Break(later) => {
                    state = later;
                    continue;
                }
            };
            match decision {
                Decision::Take(count) => return self.take(state, index, count),
                Decision::Empty if state.is_closed && state.executing == 0 => return Work::End,
                Decision::Empty if state.is_closed => {
                    state = state.sleep_while(index, |s| s.waits_for_end(index));
                }
                Decision::Wait(batch) if !state.has_leader() => {
                    state = state.lead(batch, |s| s.is_closed || self.is_wanted(s, index));
                }
                Decision::Wait(_) | Decision::Empty => {
                    state = state.sleep(index, None, |s| s.is_closed || self.is_wanted(s, index));
                }
            }
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
    pub fn take_abandoned(&self) -> Vec<(T, NotExecuted)> {
        let mut state = self.parking.lock();
        let now = state.now();
        let mut abandoned = state.waiting.take_abandoned(now);
        state.executing += abandoned.len();
        // These count as taken already. What waits behind one in an instance had to be taken with it.
        let (taken, others) = state.handed_over.take_back_all(T::is_abandoned);
        let reason = NotExecuted::Request(DropReason::Abandoned);
        abandoned.extend(taken.into_iter().map(|request| (request, reason.clone())));
        state.wake_fed(usize::MAX);
        state.queue_again(others);
        abandoned
    }

    /// Requests that have no final response yet.
    pub fn in_flight(&self) -> usize {
        self.parking.lock().in_flight()
    }

    pub fn has_queued(&self) -> bool {
        self.parking.lock().waiting.len() > 0
    }

    /// See [`Scheduler::expect_no_more`](crate::Scheduler::expect_no_more).
    pub fn expect_no_more(&self) {
        let mut state = self.parking.lock();
        let now = state.now();
        state.waiting.expect_no_more(now);
        state.wake_fed(usize::MAX);
    }

    /// Refuses requests from now on. Those that are queued are executed as ever.
    pub fn close(&self) {
        let mut state = self.parking.lock();
        if state.is_held() {
            let now = state.now();
            state.look_by(now);
        }
        state.is_closed = true;
        state.wake_all();
    }

    /// Waits until `deadline`; true as soon as the queue is closed or the instance retired.
    pub fn is_closed_by(&self, index: usize, deadline: Instant) -> bool {
        self.parking.wait_until(deadline, |s| s.is_closed || s.health.is_retired(index))
    }

    /// Waits until no request is in flight, without closing; false when that is not so by `deadline`.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.parking.wait_until(deadline, |state| state.in_flight() == 0)
    }

    /// Waits until all threads and all streams have ended; false when they have not by `deadline`.
    pub fn wait_for_end(&self, deadline: Instant) -> bool {
        let has_ended = |state: &State<T>| state.live_threads == 0 && state.executing == 0;
        self.parking.wait_until(deadline, has_ended)
    }

    fn decide(&self, state: &mut Locked<'_, State<T>>, index: usize) -> Decision {
        let (idle, is_closed) = (state.idle_threads(), state.is_closed);
        state.waiting.decide(index, idle, self.now(), is_closed)
    }

    fn now(&self) -> Instant {
        if self.needs_clock { self.parking.clock().now() } else { self.epoch }
    }

    fn lock_for(&self, index: usize) -> Locked<'_, State<T>> {
        self.parking.lock_lane(if self.is_per_instance { index } else { 0 })
    }

    /// Takes what was decided, and unlocks.
    fn take(&self, mut state: Locked<'_, State<T>>, index: usize, count: usize) -> Work<T> {
        let work = self.take_locked(&mut state, index, count);
        if let Work::Batch(_) = work {
            let left = state.waiting.len();
            state.wake_for_rest(left);
        }
        work
    }

    fn take_locked(&self, state: &mut State<T>, index: usize, count: usize) -> Work<T> {
        let (work, taken) = state.waiting.take(index, count, self.now());
        state.executing += taken;
        work
    }
}

impl<T: SequenceRequest> Locked<'_, State<T>> {
    /// Unlocks after requests that were taken have come first again, in their order.
    fn queue_again(mut self, requests: Vec<T>) {
        if requests.is_empty() {
            return;
        }
        self.executing -= requests.len();
        if let Some(backlog) = self.waiting.requests() {
            requests.into_iter().rev().for_each(|request| backlog.push_front(request));
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

impl<T: SequenceRequest> State<T> {
    fn in_flight(&self) -> usize {
        self.waiting.len() + self.executing
    }

    /// Whether the instance is to execute nothing more: it broke, or is not one of the queue's any more.
    fn is_called_off(&self, index: usize) -> bool {
        self.health.is_retired(index) || self.health.defect(index).is_some()
    }

    /// Whether the instance of a closed queue has nothing to do until others are done. A step that has left its states may
    /// be followed by another one.
    fn waits_for_end(&self, index: usize) -> bool {
        let has_step = || self.waiting.is_per_instance() && self.waiting.item_count(index) > 0;
        self.executing > 0 && !self.is_called_off(index) && !has_step()
    }

    /// What the thread of such an instance is to do.
    fn called_off(&self, index: usize) -> Option<Work<T>> {
        match self.health.is_retired(index) {
            true => Some(Work::Retire),
            false => self.health.defect(index).cloned().map(Work::Restart),
        }
    }

    fn is_held(&mut self) -> bool {
        self.waiting.is_held(self.is_closed)
    }

    /// A request that waits in an instance although it would have been its turn in any other.
    fn take_overtaken_back(&mut self) -> Option<T> {
        let limit = MAX_OVERTAKEN * self.health.working_count() as u64;
        match self.handed_over.take_overtaken_back(self.complete, limit) {
            TakeBack::Request(request) => Some(request),
            TakeBack::Nothing | TakeBack::NotYet => None,
        }
    }

    fn take_all(&mut self) -> Vec<T> {
        let requests = self.waiting.take_all();
        self.executing += requests.len();
        requests
    }

    /// Requests that are not executed: they count as taken until they are answered.
    fn take_dropped(&mut self) -> Vec<(T, NotExecuted)> {
        let dropped = self.waiting.take_dropped();
        self.executing += dropped.len();
        dropped
    }
}

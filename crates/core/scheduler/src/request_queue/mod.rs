//! Instance threads pull requests from this queue. [`Waiting`] holds the requests and picks the next batch; [`Parking`] puts
//! idle threads to sleep and wakes them.
//!
//! There is no batcher thread: instance threads form their batches themselves. A thread with a broken instance takes no
//! work; another thread is woken in its place. The queue also records which of its instances work, because requests that
//! wait while none works must be answered.
//!
//! Backends that run one request at a time can prefetch ([`PrefetchedRequests`]): a busy instance receives its next requests
//! early. A prefetched request still counts as queued, and an instance that becomes free takes it back.

mod expiry;
mod health;
mod in_place_turns;
mod instances;
mod learned_delay;
mod permits;
mod prefetch;
mod prefetched_requests;
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

use self::{
    health::InstanceHealth,
    in_place_turns::InPlaceTurns,
    prefetched_requests::{PrefetchedRequests, TakeBack},
    waiting::Waiting,
};
pub(crate) use self::{
    in_place_turns::SubmitterRole, prefetched_requests::PrefetchedRequest, waiting::NotExecuted,
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
    /// True if decisions depend on the time; else the clock is not read.
    needs_clock: bool,
    joins_requests: bool,
    /// True if the delay of batches is learned.
    learns_delay: bool,
    /// True if each instance has work that no other may do.
    is_per_instance: bool,
    /// The time used if nothing depends on it.
    epoch: Instant,
    /// Without a rate limiter every instance may execute.
    permits: Option<Permits>,
}

struct State<T: SequenceRequest> {
    waiting: Waiting<T>,
    handed_over: PrefetchedRequests<T>,
    turns: InPlaceTurns,
    /// The number of requests taken that have no final response yet, including streams.
    executing: usize,
    /// The number of requests that have had their final response.
    complete: u64,
    is_closed: bool,
    /// The number of threads that have not ended.
    live_threads: usize,
    health: InstanceHealth,
}

/// The next work of an instance thread.
pub(crate) enum Work<T: SequenceRequest> {
    Batch(Vec<T>),
    /// Requests of sequences, in the order of their rows; `None`: a row without a request.
    Steps(Vec<Option<Step<T, T::States>>>),
    /// Requests that are not executed; each must be answered.
    Dropped(Vec<(T, NotExecuted)>),
    /// The thread's instance is broken and must be restarted.
    Restart(Error),
    /// The instance is no longer one of the queue's: its thread ends as soon as its streams have.
    Retire,
    /// The queue is closed and all requests are answered.
    End,
}

impl<T: SequenceRequest> Work<T> {
    /// Makes work of a request that was taken back.
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

/// The next work of an instance that has finished a request.
pub(crate) struct Next<T> {
    /// The first request that was handed over to it, with its number. It has begun this one.
    pub begun: Option<(usize, T)>,
    /// Requests to hand over to it, in this order.
    pub ahead: Vec<T>,
}

/// When each instance has completed this many requests on average since one last began a request, that one's waiting
/// requests go to others, oldest first. If all take equally long, each instance completes one meanwhile.
const MAX_OVERTAKEN: u64 = 2;

/// The time after which a free instance looks again for a request in another that has not read what comes before it.
const UNREAD_PAUSE: Duration = Duration::from_millis(1);

/// Every instance has failed and none is being restarted.
pub(crate) struct NoInstances<T> {
    pub reason: Error,
    /// The requests that waited for an instance; each must be answered.
    pub unserved: Vec<T>,
}

/// The result for an accepted request.
#[derive(Debug)]
pub(crate) struct AcceptedRequest {
    /// The sequence that this request restarts, although its previous run has not ended.
    pub restarts: Option<CorrelationId>,
    /// The instance whose thread the caller must replace to execute waiting requests.
    pub turn: Option<usize>,
}

/// The reason why a request was not accepted.
#[derive(Debug)]
pub(crate) enum Refusal {
    Closed,
    Full,
    NoWorkingInstance(Error),
    OfSequence(SequenceRefusal),
}

/// The report of an instance thread that looks for work: requests taken before that have their final response now.
pub(crate) struct FinishedWork<T: SequenceRequest> {
    /// The number of requests.
    pub requests: usize,
    /// The ends of requests that were steps of sequences.
    pub steps: Vec<StepEnd<T, T::States>>,
}

impl<T: SequenceRequest> From<usize> for FinishedWork<T> {
    /// Makes a report of requests that were no steps of sequences.
    fn from(requests: usize) -> Self {
        Self { requests, steps: Vec::new() }
    }
}

impl<T: SequenceRequest> RequestQueue<T> {
    /// Creates a queue. `hold`: no request is executed until this many wait.
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

    /// Does [`RequestQueue::push_by`] with a caller that executes nothing.
    #[cfg(test)]
    pub fn push(&self, request: T) -> Result<AcceptedRequest, (T, Refusal)> {
        self.push_by(SubmitterRole::Leaves, request)
    }

    /// Accepts a request, or returns it with the reason why not.
    pub fn push_by(
        &self,
        caller: SubmitterRole,
        request: T,
    ) -> Result<AcceptedRequest, (T, Refusal)> {
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
        Ok(AcceptedRequest { restarts: None, turn })
    }

    /// Waits for work for instance `index`.
    ///
    /// [`Work::End`] comes only when all requests have their final response, so that no instance is dropped
    /// while a stream of it is open. `rest` is called before the thread sleeps.
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
                        // Earlier requests may have been read by then.
                        let look = self.parking.clock().after(UNREAD_PAUSE);
                        state = state.sleep(index, Some(look), |s| s.is_called_off(index));
                        continue;
                    }
                }
            }
            if !matches!(decision, Decision::Take(_)) {
                rest();
            }
            // The decision only describes work: without a permit the thread sleeps, and the requests stay in the backlog.
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

    /// Reports that `done` requests have their final response, without [`RequestQueue::pull`].
    pub fn finish(&self, done: usize) {
        self.parking.lock().finish(done);
    }

    /// Puts requests that could not be handed over back to the front of the queue.
    pub fn put_back(&self, requests: Vec<T>) {
        self.parking.lock().queue_again(requests);
    }

    /// Removes abandoned requests, which count as taken until [`RequestQueue::finish`]. A thread that pulls removes them itself
    /// when it reaches them; this frees them earlier.
    pub fn take_abandoned(&self) -> Vec<(T, NotExecuted)> {
        let mut state = self.parking.lock();
        let now = state.now();
        let mut abandoned = state.waiting.take_abandoned(now);
        state.executing += abandoned.len();
        // These count as taken already. Requests behind an abandoned one in an instance had to be taken back with it.
        let (taken, others) = state.handed_over.take_back_all(T::is_abandoned);
        let reason = NotExecuted::Request(DropReason::Abandoned);
        abandoned.extend(taken.into_iter().map(|request| (request, reason.clone())));
        state.wake_fed(usize::MAX);
        state.queue_again(others);
        abandoned
    }

    /// Returns the number of requests without a final response.
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

    /// Refuses requests from now on. Queued ones are still executed.
    pub fn close(&self) {
        let mut state = self.parking.lock();
        if state.is_held() {
            let now = state.now();
            state.look_by(now);
        }
        state.is_closed = true;
        state.wake_all();
    }

    /// Waits until `deadline`. Returns true as soon as the queue is closed or the instance retired.
    pub fn is_closed_by(&self, index: usize, deadline: Instant) -> bool {
        self.parking.wait_until(deadline, |s| s.is_closed || s.health.is_retired(index))
    }

    /// Waits until no request is in flight, without closing; returns false if some are at `deadline`.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.parking.wait_until(deadline, |state| state.in_flight() == 0)
    }

    /// Waits until all threads and streams have ended; returns false if some have not by `deadline`.
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

    /// Takes the requests of a decision, and unlocks.
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
    /// Puts taken requests back to the front in their order, and unlocks.
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

    /// Returns true if the instance must execute nothing more, because it is broken or removed from the queue.
    fn is_called_off(&self, index: usize) -> bool {
        self.health.is_retired(index) || self.health.defect(index).is_some()
    }

    /// Returns true if the instance of a closed queue must wait for the end of other requests. A step that left its states may
    /// be followed by another one.
    fn waits_for_end(&self, index: usize) -> bool {
        let has_step = || self.waiting.is_per_instance() && self.waiting.item_count(index) > 0;
        self.executing > 0 && !self.is_called_off(index) && !has_step()
    }

    /// Returns the work for the thread of such an instance.
    fn called_off(&self, index: usize) -> Option<Work<T>> {
        match self.health.is_retired(index) {
            true => Some(Work::Retire),
            false => self.health.defect(index).cloned().map(Work::Restart),
        }
    }

    fn is_held(&mut self) -> bool {
        self.waiting.is_held(self.is_closed)
    }

    /// Takes back a request that waits in an instance although any other would have executed it by now.
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

    /// Removes requests that are not executed. They count as taken until they are answered.
    fn take_dropped(&mut self) -> Vec<(T, NotExecuted)> {
        let dropped = self.waiting.take_dropped();
        self.executing += dropped.len();
        dropped
    }
}

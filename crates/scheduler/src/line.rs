use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use galatea_config::{ModelConfig, Scheduling};
use galatea_types::Error;

use crate::{
    desk::Desk,
    health::Health,
    join::JoinRules,
    policy::{BatchRules, Decision, Waiting, next_batch},
    queue::{BatchQueue, DropReason, Placement},
    ticket::Ticket,
};

/// The waiting requests of one model and the instance threads that wait for them.
///
/// Threads pull and form their batch themselves. A thread without work sleeps on `work`; at most one, the
/// leader, waits on `growth` for a batch to fill up. Whoever adds a request wakes at most one thread, and
/// none where none sleeps. A thread whose instance broke takes no work: what it was woken for goes to another.
pub(crate) struct Line {
    state: Mutex<State>,
    work: Condvar,
    growth: Condvar,
    closing: Condvar,
    ended: Condvar,
    idle: Condvar,
    rules: BatchRules,
    joins: JoinRules,
    /// Decisions depend on the time; else the clock is not asked.
    needs_clock: bool,
    epoch: Instant,
}

struct State {
    queue: BatchQueue<Ticket>,
    /// Requests taken out that have no final answer yet, streams included.
    executing: usize,
    /// Threads asleep that nobody has woken yet.
    sleeping: usize,
    /// Threads woken that have not looked at the queue yet.
    woken: usize,
    leader: Option<Leader>,
    next_place: u64,
    hold_until_queued: usize,
    is_closed: bool,
    /// Callers of [`Line::wait_until_idle`]; while there are none, nobody is notified.
    idle_waiters: usize,
    /// Threads that have not ended.
    live: usize,
    health: Health,
}

struct Leader {
    waiting: Waiting,
    is_woken: bool,
}

/// What the line has for a thread.
pub(crate) enum Pulled {
    Batch(Vec<Ticket>),
    /// Requests that are not executed, each to be answered.
    Dropped(Vec<(Ticket, DropReason)>),
    /// The thread's instance does not work any more: it must be made anew.
    Renew(Error),
    Closed,
}

/// Why a request was not let in.
pub(crate) enum Refusal {
    Closed,
    Full,
    Outage(Error),
}

enum Wake {
    Nobody,
    Sleeper,
    Leader,
}

impl Line {
    pub fn new(config: &ModelConfig, threads: usize, hold_until_queued: usize) -> Self {
        let rules = BatchRules::from_config(config);
        let queue = match config.scheduling() {
            Scheduling::Dynamic(dynamic) => BatchQueue::from_config(dynamic),
            _ => BatchQueue::plain(),
        };
        Self {
            needs_clock: rules.has_delay() || queue.has_timeouts(),
            state: Mutex::new(State::new(queue, threads, hold_until_queued)),
            work: Condvar::new(),
            growth: Condvar::new(),
            closing: Condvar::new(),
            ended: Condvar::new(),
            idle: Condvar::new(),
            rules,
            joins: JoinRules::from_config(config),
            epoch: Instant::now(),
        }
    }

    /// Lets a request in, or gives it back with the reason.
    pub fn enter(&self, mut ticket: Ticket) -> Option<(Ticket, Refusal)> {
        let request = &ticket.job.request;
        let placement = Placement { priority: request.priority, timeout: request.timeout };
        let mut state = self.lock();
        if state.is_closed {
            return Some((ticket, Refusal::Closed));
        }
        if let Some(outage) = state.health.outage().cloned() {
            return Some((ticket, Refusal::Outage(outage)));
        }
        ticket.place = state.next_place;
        let fits = self.fits_growing_batch(&state, &ticket);
        let expires_at = match state.queue.push(ticket, placement) {
            Ok(expires_at) => expires_at,
            Err(ticket) => return Some((ticket, Refusal::Full)),
        };
        state.next_place += 1;
        let wake = self.wake_for_new(&mut state, expires_at, fits);
        drop(state);
        self.wake(wake);
        None
    }

    /// Waits for something to do for instance `index`, which likes to have `depth` requests at once.
    /// `done` of the requests pulled before are finished with. Says `Closed` only when all requests are, so that no instance goes while streams of it are
    /// open.
    pub fn pull(&self, index: usize, depth: usize, done: usize) -> Pulled {
        let mut state = self.lock();
        self.finish(&mut state, done);
        loop {
            if let Some(reason) = state.health.defect(index).cloned() {
                let wake = state.wake_for_rest();
                drop(state);
                self.wake(wake);
                return Pulled::Renew(reason);
            }
            let decision = self.decide(&mut state);
            let dropped = state.queue.take_dropped();
            if !dropped.is_empty() {
                state.executing += dropped.len();
                return Pulled::Dropped(dropped);
            }
            match decision {
                Decision::Take(count) => {
                    let count = if depth > 1 { self.share(&state, depth) } else { count };
                    let tickets = state.queue.take(count);
                    state.executing += tickets.len();
                    let wake = state.wake_for_rest();
                    drop(state);
                    self.wake(wake);
                    return Pulled::Batch(tickets);
                }
                Decision::Empty if state.is_closed && state.executing == 0 => {
                    return Pulled::Closed;
                }
                Decision::Empty if state.is_closed => state = self.linger(state, index),
                Decision::Wait(waiting) if state.leader.is_none() => {
                    state = self.lead(state, index, waiting);
                }
                Decision::Wait(_) | Decision::Empty => state = self.sleep(state, index),
            }
        }
    }

    /// Says that `done` pulled requests are finished with, when no pull follows at once.
    pub fn settle(&self, done: usize) {
        self.finish(&mut self.lock(), done);
    }

    pub fn in_flight(&self) -> usize {
        let state = self.lock();
        state.queue.len() + state.executing
    }

    pub fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_all();
        self.growth.notify_all();
        self.closing.notify_all();
    }

    /// Waits; true as soon as the line is closed.
    pub fn is_closed_within(&self, timeout: Duration) -> bool {
        let waited = self.closing.wait_timeout_while(self.lock(), timeout, |s| !s.is_closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    pub fn has_queued(&self) -> bool {
        self.lock().queue.len() > 0
    }

    /// See [`Health::begin`].
    pub fn begin_instance(&self, index: usize) -> u64 {
        self.lock().health.begin(index)
    }

    pub fn instance_made(&self, index: usize) {
        self.lock().health.made(index);
    }

    /// See [`Health::break_down`]. Wakes the instance's thread, whatever it waits for.
    pub fn break_instance(&self, index: usize, generation: u64, reason: Error) -> bool {
        let is_news = self.lock().health.break_down(index, generation, reason);
        if is_news {
            self.work.notify_all();
            self.growth.notify_all();
        }
        is_news
    }

    /// The same for whatever instance the thread has now.
    pub fn break_current_instance(&self, index: usize, reason: Error) {
        let mut state = self.lock();
        let generation = state.health.generation(index);
        state.health.break_down(index, generation, reason);
    }

    /// Nobody is to wait for this instance until it works again. When there is no other to wait for, the
    /// waiting requests are given back: nobody would execute them.
    pub fn give_up_instance(&self, index: usize, reason: &Error) -> Vec<Ticket> {
        let mut state = self.lock();
        if !state.health.give_up(index, reason) {
            return Vec::new();
        }
        let waiting = state.queue.len();
        let tickets = state.queue.take(waiting);
        state.executing += tickets.len();
        tickets
    }

    pub fn has_working_instance(&self) -> bool {
        self.lock().health.has_working_instance()
    }

    /// Takes requests back that were pulled but not begun: they come first again. Returns how many.
    pub fn put_back(&self, tickets: Vec<Ticket>, desk: &Desk) -> usize {
        let count = tickets.len();
        if count == 0 {
            return 0;
        }
        let mut state = self.lock();
        state.executing -= count;
        for ticket in tickets.into_iter().rev() {
            desk.statistics.pending_up();
            state.queue.push_front(ticket);
        }
        let wake = state.wake_sleeper();
        drop(state);
        self.wake(wake);
        count
    }

    pub fn thread_ended(&self) {
        self.lock().live -= 1;
        self.ended.notify_all();
    }

    /// Waits until all threads and all streams have ended; false when they have not by `deadline`.
    pub fn wait_for_end(&self, deadline: Instant) -> bool {
        let timeout = deadline.saturating_duration_since(Instant::now());
        let is_going_on = |s: &mut State| s.live > 0 || s.executing > 0;
        let waited = self.ended.wait_timeout_while(self.lock(), timeout, is_going_on);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits until no request is queued or executing, without closing; false when that is not so by `deadline`.
    pub fn wait_until_idle(&self, deadline: Instant) -> bool {
        let timeout = deadline.saturating_duration_since(Instant::now());
        let mut state = self.lock();
        state.idle_waiters += 1;
        let waited = self.idle.wait_timeout_while(state, timeout, |s| !s.is_idle());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.idle_waiters -= 1;
        state.is_idle()
    }

    fn finish(&self, state: &mut State, done: usize) {
        state.executing -= done;
        if state.idle_waiters > 0 && state.is_idle() {
            self.idle.notify_all();
        }
        if state.is_closed && done > 0 && state.executing == 0 {
            self.work.notify_all();
            self.ended.notify_all();
        }
    }

    fn decide(&self, state: &mut State) -> Decision {
        if state.is_held() {
            return Decision::Empty;
        }
        let now = if self.needs_clock { Instant::now() } else { self.epoch };
        let can_join = |a: &Ticket, b: &Ticket| self.joins.can_join(&a.job.request, &b.job.request);
        next_batch(&mut state.queue, &self.rules, can_join, now, state.is_closed)
    }

    /// How many requests an instance takes that likes to have `depth` at once, to execute each alone: no
    /// more than leaves as many for each of the others.
    fn share(&self, state: &State, depth: usize) -> usize {
        let share = state.queue.len().div_ceil(state.health.working_count().max(1));
        state.queue.count_wanted(share.min(depth)).max(1)
    }

    fn fits_growing_batch(&self, state: &State, ticket: &Ticket) -> bool {
        if state.leader.is_none() {
            return true;
        }
        // With priorities the new request may change what comes first: the leader looks for itself.
        let first = state.queue.front();
        !state.queue.has_priorities()
            && first.is_none_or(|f| self.joins.can_join(&f.job.request, &ticket.job.request))
    }

    fn wake_for_new(&self, state: &mut State, expires_at: Option<Instant>, fits: bool) -> Wake {
        if state.is_held() {
            return Wake::Nobody;
        }
        let queued_items = state.queue.item_count();
        if let Some(leader) = &mut state.leader {
            if leader.is_woken || !leader.waiting.is_ended_by(queued_items, expires_at, fits) {
                return Wake::Nobody;
            }
            leader.is_woken = true;
            return Wake::Leader;
        }
        // One thread on its way takes all that can be joined, and wakes another for what it leaves.
        if self.rules.joins_requests() && state.woken > 0 {
            return Wake::Nobody;
        }
        state.wake_sleeper()
    }

    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        index: usize,
        waiting: Waiting,
    ) -> MutexGuard<'a, State> {
        state.leader = Some(Leader { waiting, is_woken: false });
        let timeout = waiting.until.saturating_duration_since(Instant::now());
        let is_waiting = |s: &mut State| {
            !s.has_news_for(index) && s.leader.as_ref().is_some_and(|leader| !leader.is_woken)
        };
        let waited = self.growth.wait_timeout_while(state, timeout, is_waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.leader = None;
        state
    }

    /// Waits for requests.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        index: usize,
    ) -> MutexGuard<'a, State> {
        state.sleeping += 1;
        let is_waiting = |s: &mut State| !s.has_news_for(index) && s.woken == 0;
        let waited = self.work.wait_while(state, is_waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.woken > 0 {
            state.woken -= 1;
        } else {
            state.sleeping -= 1;
        }
        state
    }

    /// Waits, after closing, for the requests that are still worked on.
    fn linger<'a>(&'a self, state: MutexGuard<'a, State>, index: usize) -> MutexGuard<'a, State> {
        let is_waiting = |s: &mut State| s.executing > 0 && s.health.defect(index).is_none();
        let waited = self.work.wait_while(state, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::Sleeper => self.work.notify_one(),
            Wake::Leader => self.growth.notify_one(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic half-way runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(queue: BatchQueue<Ticket>, threads: usize, hold_until_queued: usize) -> Self {
        Self {
            queue,
            executing: 0,
            sleeping: 0,
            woken: 0,
            leader: None,
            next_place: 0,
            hold_until_queued,
            is_closed: false,
            idle_waiters: 0,
            live: threads,
            health: Health::new(threads),
        }
    }

    fn is_idle(&self) -> bool {
        self.executing == 0 && self.queue.len() == 0
    }

    /// Whether the thread of this instance is to stop waiting for requests.
    fn has_news_for(&self, index: usize) -> bool {
        self.is_closed || self.health.defect(index).is_some()
    }

    /// Whether the requests are still held back (S-23). Once let go, they are never held again.
    fn is_held(&mut self) -> bool {
        if self.queue.len() >= self.hold_until_queued || self.is_closed {
            self.hold_until_queued = 0;
        }
        self.hold_until_queued > 0
    }

    fn wake_sleeper(&mut self) -> Wake {
        if self.sleeping == 0 {
            return Wake::Nobody;
        }
        self.sleeping -= 1;
        self.woken += 1;
        Wake::Sleeper
    }

    /// After a batch was taken: somebody should look at what it left.
    fn wake_for_rest(&mut self) -> Wake {
        if self.queue.len() <= self.woken || self.leader.is_some() {
            return Wake::Nobody;
        }
        self.wake_sleeper()
    }
}

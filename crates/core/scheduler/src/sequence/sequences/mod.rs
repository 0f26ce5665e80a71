//! The sequences of a model: where each has its place, and what becomes of those that wait, end or are lost.

mod endings;
mod idle;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::Instant,
};

use galatea_types::{CorrelationId, Error};

use self::idle::RestingSlots;
use super::{
    backlog::{SequenceBacklog, WaitingSequence},
    key::{Owner, SequenceRequest},
    rules::{SequenceRules, Strategy},
    slots::{Head, InstanceSlots},
    step::{SlotTicket, Step, StepEnd},
};
use crate::queue::{Backlog, Decision};

/// All sequences of a model and their requests that are not being executed.
pub(crate) struct Sequences<T: SequenceRequest> {
    rules: SequenceRules,
    live: HashMap<CorrelationId, LiveSequence>,
    /// Sequences without a slot.
    backlog: SequenceBacklog<T>,
    /// Of each instance by its number.
    instances: Vec<InstanceSlots<T>>,
    /// Slots without a sequence of instances that work, the lowest first, so that batches stay small and instances fill
    /// evenly.
    free: BTreeSet<(u32, usize)>,
    dropped: Vec<(T, SequenceDrop)>,
    /// Instances that got requests from the backlog.
    fed: Vec<usize>,
    is_held: bool,
    /// New requests go elsewhere: no sequence of which nothing waits goes on.
    expects_no_more: bool,
    next_own: u64,
    /// Sequences that keep states and have nothing to do.
    resting: RestingSlots,
    /// Those that gave way, the last ones last, as long as their next request is told.
    gave_way: VecDeque<CorrelationId>,
}

/// A sequence that requests may be added to.
struct LiveSequence {
    place: SequencePlace,
    owner: Owner,
    last_used: Instant,
}

enum SequencePlace {
    Slot {
        instance: usize,
        slot: u32,
    },
    /// By its number in the backlog.
    Backlog(u64),
    /// Its instance broke, of which its next request is told.
    Lost(Error),
    /// Its states gave way to those of others, of which its next request is told.
    GaveWay,
}

/// Where the sequence of a request is, if it may be added there.
enum FoundSequence {
    Slot { instance: usize, slot: u32 },
    Backlog(u64),
    Nowhere,
}

/// Where a request went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PushedRequest {
    /// The instance that may execute it next, and whether it may join the batch that waits to grow; `None` where others come
    /// first.
    pub next: Option<(usize, bool)>,
    /// It begins a sequence of this name although one that has not ended has it.
    pub restarts: Option<CorrelationId>,
}

/// Why a request was not accepted.
#[derive(Clone, Debug)]
pub(crate) enum SequenceRefusal {
    /// It belongs to no sequence.
    NoSequence,
    /// Its sequence has not begun, or is over.
    NotStarted,
    /// Another client has a sequence of this name.
    OfAnotherClient,
    /// Its sequence was lost with its instance.
    Lost(Error),
    /// The states of its sequence gave way to those of others.
    GaveWay,
}

/// Why a request that was accepted is not executed.
#[derive(Clone, Debug)]
pub(crate) enum SequenceDrop {
    /// Nobody waits for the response.
    Abandoned,
    /// Its sequence is over, because nobody waited for an earlier request of it.
    Cancelled,
    /// Its sequence waited for a slot for longer than one of its requests allowed.
    Expired,
    /// Its instance broke.
    Lost(Error),
}

impl<T: SequenceRequest> Sequences<T> {
    /// `batcher` makes the queue of an instance under the oldest strategy.
    pub fn new(
        rules: SequenceRules,
        instances: usize,
        batcher: impl Fn() -> Backlog<Head<T>>,
    ) -> Self {
        let slots = |_| match rules.strategy {
            Strategy::Direct { .. } => InstanceSlots::new(None),
            Strategy::Oldest => InstanceSlots::new(Some(batcher())),
        };
        Self {
            live: HashMap::new(),
            backlog: SequenceBacklog::default(),
            instances: (0..instances).map(slots).collect(),
            free: BTreeSet::new(),
            dropped: Vec::new(),
            fed: Vec::new(),
            is_held: rules.hold.queued > 0,
            expects_no_more: false,
            next_own: 1,
            resting: RestingSlots::default(),
            gave_way: VecDeque::new(),
            rules,
        }
    }

    /// Requests that wait, in slots and in the backlog.
    pub fn len(&self) -> usize {
        self.backlog.len() + self.in_slots()
    }

    /// Sequences that may go on, those that wait for a slot included.
    #[cfg(test)]
    pub fn live_count(&self) -> usize {
        self.live.len()
    }

    /// Items that a batch of this instance could have now.
    pub fn ready_items(&self, instance: usize) -> u64 {
        self.instances.get(instance).map_or(0, InstanceSlots::ready_items)
    }

    fn in_slots(&self) -> usize {
        self.instances.iter().map(|slots| slots.queued).sum()
    }

    /// Accepts a request at `now`, or gives it back with the reason why not.
    pub fn push(
        &mut self,
        mut request: T,
        now: Instant,
    ) -> Result<PushedRequest, (T, SequenceRefusal)> {
        let owner = match request.correlation_id() {
            CorrelationId::None if self.rules.is_iterative => {
                let number = self.own_number();
                request.begin_own_sequence(number);
                Owner::Server
            }
            CorrelationId::None => return Err((request, SequenceRefusal::NoSequence)),
            _ => Owner::Client(request.client()),
        };
        self.end_if_idle(request.correlation_id(), now);
        self.expire_backlog(now);
        let (found, restarts) = match self.find(&request, owner, now) {
            Ok(found) => found,
            Err(refusal) => return Err((request, refusal)),
        };
        let restarts = restarts.then(|| request.correlation_id().clone());
        let next = match found {
            FoundSequence::Slot { instance, slot } => {
                self.push_to_slot(request, instance, slot, now)
            }
            FoundSequence::Backlog(number) => self.push_to_backlog(request, number, now),
            FoundSequence::Nowhere => self.begin(request, owner, now),
        };
        Ok(PushedRequest { next, restarts })
    }

    /// Where the sequence of a request is, and whether the request begins it again.
    fn find(
        &mut self,
        request: &T,
        owner: Owner,
        now: Instant,
    ) -> Result<(FoundSequence, bool), SequenceRefusal> {
        let is_start = request.is_start();
        let Some(live) = self.live.get_mut(request.correlation_id()) else {
            return if is_start {
                Ok((FoundSequence::Nowhere, false))
            } else {
                Err(SequenceRefusal::NotStarted)
            };
        };
        if live.owner != owner {
            return Err(SequenceRefusal::OfAnotherClient);
        }
        live.last_used = now;
        let refusal = match &live.place {
            SequencePlace::Slot { instance, slot } => {
                return Ok((FoundSequence::Slot { instance: *instance, slot: *slot }, is_start));
            }
            SequencePlace::Backlog(number) => {
                return Ok((FoundSequence::Backlog(*number), is_start));
            }
            SequencePlace::Lost(error) => SequenceRefusal::Lost(error.clone()),
            SequencePlace::GaveWay => SequenceRefusal::GaveWay,
        };
        self.live.remove(request.correlation_id());
        if is_start { Ok((FoundSequence::Nowhere, false)) } else { Err(refusal) }
    }

    /// The first request of a sequence.
    fn begin(&mut self, request: T, owner: Owner, now: Instant) -> Option<(usize, bool)> {
        if self.free_slot().is_none() {
            self.end_idle(now);
        }
        let id = request.correlation_id().clone();
        // Those that wait already come first.
        let free = if self.backlog.is_empty() { self.free_slot() } else { None };
        let Some((slot, instance)) = free else {
            let number = self.backlog.next_number();
            self.live.insert(
                id,
                LiveSequence { place: SequencePlace::Backlog(number), owner, last_used: now },
            );
            return self.push_to_backlog(request, number, now);
        };
        let place = SequencePlace::Slot { instance, slot };
        self.live.insert(id.clone(), LiveSequence { place, owner, last_used: now });
        self.occupy(instance, slot, Some(id), now);
        self.push_to_slot(request, instance, slot, now)
    }

    fn push_to_slot(
        &mut self,
        request: T,
        instance: usize,
        slot: u32,
        now: Instant,
    ) -> Option<(usize, bool)> {
        let slots = &mut self.instances[instance];
        if request.is_end() {
            // Another sequence of this name may begin elsewhere.
            self.live.remove(request.correlation_id());
            slots.slot_mut(slot).sequence = None;
        }
        slots.note_idle_check(now, self.rules.max_idle);
        slots.push(slot, request).map(|fits| (instance, fits))
    }

    fn push_to_backlog(&mut self, request: T, number: u64, now: Instant) -> Option<(usize, bool)> {
        if request.is_end() {
            self.live.remove(request.correlation_id());
        }
        self.backlog.push(number, request, now);
        None
    }

    /// The slot that the next sequence gets, with its instance.
    fn free_slot(&self) -> Option<(u32, usize)> {
        let unused = self.instances.iter().zip(0..).filter_map(|(slots, instance)| {
            let slot = u32::try_from(slots.slots.len()).ok()?;
            (slots.is_available && slot < self.rules.slots).then_some((slot, instance))
        });
        self.free.first().copied().into_iter().chain(unused).min()
    }

    fn occupy(&mut self, instance: usize, slot: u32, id: Option<CorrelationId>, now: Instant) {
        self.free.remove(&(slot, instance));
        let slots = &mut self.instances[instance];
        let state = slots.slot_mut(slot);
        state.is_taken = true;
        state.sequence = id;
        slots.note_idle_check(now, self.rules.max_idle);
    }

    /// A slot is free: the sequence that has waited longest gets it.
    fn refill(&mut self, instance: usize, slot: u32, now: Instant) {
        if !self.instances[instance].is_available {
            return;
        }
        self.free.insert((slot, instance));
        while let Some((number, waiting)) = self.backlog.pop_first() {
            let is_open = self.is_collected(&waiting.id, number);
            if waiting.is_abandoned() {
                self.drop_waiting(number, waiting, &SequenceDrop::Cancelled);
                continue;
            }
            if is_open && let Some(live) = self.live.get_mut(&waiting.id) {
                live.place = SequencePlace::Slot { instance, slot };
                live.last_used = now;
            }
            self.occupy(instance, slot, is_open.then_some(waiting.id), now);
            let slots = &mut self.instances[instance];
            for request in waiting.requests {
                slots.push(slot, request);
            }
            self.fed.push(instance);
            return;
        }
    }

    /// Whether requests are still added to this sequence of the backlog.
    fn is_collected(&self, id: &CorrelationId, number: u64) -> bool {
        let live = self.live.get(id);
        live.is_some_and(|live| matches!(live.place, SequencePlace::Backlog(n) if n == number))
    }

    /// What this instance is to do now. `is_closed`: no more requests will come.
    pub fn decide(&mut self, instance: usize, now: Instant, is_closed: bool) -> Decision {
        self.expire_backlog(now);
        match is_closed || self.expects_no_more {
            // None of them will go on.
            true => self.end_quiet(instance, now),
            false => self.end_idle_of(instance, now),
        }
        if self.is_held(is_closed) {
            return Decision::Empty;
        }
        loop {
            let Some(slots) = self.instances.get_mut(instance) else { return Decision::Empty };
            let (decision, over) = slots.decide(&self.rules.strategy, now, is_closed);
            if over.is_empty() {
                return decision;
            }
            for (slot, first) in over {
                let rest = self.end_sequence(instance, slot, now);
                self.drop_all(first.into_iter().chain(rest), &SequenceDrop::Cancelled);
            }
        }
    }

    /// Takes what was decided on for this instance. `None`: a row of the batch without a request.
    pub fn take(
        &mut self,
        instance: usize,
        count: usize,
        now: Instant,
    ) -> Vec<Option<Step<T, T::States>>> {
        let slots = &mut self.instances[instance];
        let steps = slots.take(&self.rules.strategy, count);
        // Of an iterative sequence it is known when its request was executed.
        let is_last =
            |step: &&Step<T, T::States>| step.request.is_end() && !self.rules.is_iterative;
        let ended: Vec<u32> =
            steps.iter().flatten().filter(is_last).map(|step| step.ticket.slot).collect();
        for slot in ended {
            self.instances[instance].release(slot);
            self.refill(instance, slot, now);
        }
        steps
    }

    /// Requests of this instance were executed, at `now`.
    pub fn finish(
        &mut self,
        instance: usize,
        ends: impl IntoIterator<Item = StepEnd<T, T::States>>,
        now: Instant,
    ) {
        for end in ends {
            let ticket = end.ticket;
            let is_over = self.rules.is_iterative && end.again.is_none();
            let slots = &mut self.instances[instance];
            let is_current = slots.is_current(ticket);
            if let Some(request) = slots.finish(end) {
                self.drop_all([request], &SequenceDrop::Cancelled);
            }
            if is_current {
                self.was_used(instance, ticket, now);
            }
            if is_over && is_current {
                let rest = self.end_sequence(instance, ticket.slot, now);
                self.drop_all(rest, &SequenceDrop::Cancelled);
            } else if is_current {
                self.note_rest(instance, ticket.slot);
            }
        }
    }

    /// It is idle from now on, and not from the arrival of its last request.
    fn was_used(&mut self, instance: usize, ticket: SlotTicket, now: Instant) {
        let state = self.instances[instance].slots.get(ticket.slot as usize);
        let id = state.and_then(|state| state.sequence.as_ref());
        if let Some(live) = id.and_then(|id| self.live.get_mut(id)) {
            live.last_used = now;
        }
    }

    /// The sequence of a slot is over, and another one gets the slot. Returns the requests that waited there.
    fn end_sequence(&mut self, instance: usize, slot: u32, now: Instant) -> Vec<T> {
        let slots = &mut self.instances[instance];
        if let Some(id) = slots.slot_mut(slot).sequence.take() {
            self.live.remove(&id);
        }
        let requests = slots.clear(slot);
        self.refill(instance, slot, now);
        requests
    }

    fn drop_all(&mut self, requests: impl IntoIterator<Item = T>, reason: &SequenceDrop) {
        let dropped = requests.into_iter().map(|request| match request.is_abandoned() {
            true => (request, SequenceDrop::Abandoned),
            false => (request, reason.clone()),
        });
        self.dropped.extend(dropped);
    }

    fn drop_waiting(&mut self, number: u64, waiting: WaitingSequence<T>, reason: &SequenceDrop) {
        if self.is_collected(&waiting.id, number) {
            self.live.remove(&waiting.id);
        }
        self.drop_all(waiting.requests, reason);
    }

    /// Removes the requests that are not executed: each must be answered.
    pub fn take_dropped(&mut self) -> Vec<(T, SequenceDrop)> {
        std::mem::take(&mut self.dropped)
    }

    /// Instances that have got requests which nobody was told of.
    pub fn take_fed(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.fed)
    }

    /// Whether requests are held back until enough of them wait. Once they are not, they never are again.
    pub fn is_held(&mut self, is_closed: bool) -> bool {
        let has_enough = self.in_slots() >= self.rules.hold.queued
            && self.backlog.len() >= self.rules.hold.backlogged;
        if self.is_held && (has_enough || is_closed) {
            self.is_held = false;
            self.fed.extend(0..self.instances.len());
        }
        self.is_held
    }

    /// A number that no sequence has.
    fn own_number(&mut self) -> u64 {
        while self.live.contains_key(&CorrelationId::Number(self.next_own)) {
            self.next_own += 1;
        }
        let number = self.next_own;
        self.next_own += 1;
        number
    }
}

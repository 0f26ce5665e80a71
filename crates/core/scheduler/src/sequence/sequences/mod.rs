//! The sequences of a model: their places, and the handling of those that wait, end or are lost.

mod endings;
mod idle_sequences;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::Instant,
};

use galatea_types::{CorrelationId, Error};

use self::idle_sequences::RestingSlots;
use super::{
    backlog::{SequenceBacklog, WaitingSequence},
    key::{Owner, SequenceRequest},
    rules::{SequenceRules, Strategy},
    slots::{Head, InstanceSlots},
    step::{SlotTicket, Step, StepEnd},
};
use crate::queue::{Backlog, Decision};

/// All sequences of a model, and their requests that are not being executed.
pub(crate) struct Sequences<T: SequenceRequest> {
    rules: SequenceRules,
    live: HashMap<CorrelationId, LiveSequence>,
    /// Sequences without a slot.
    backlog: SequenceBacklog<T>,
    /// The slots of each instance, by its number.
    instances: Vec<InstanceSlots<T>>,
    /// Free slots of working instances, the lowest first, so that batches stay small and instances fill evenly.
    free: BTreeSet<(u32, usize)>,
    dropped: Vec<(T, SequenceDrop)>,
    /// Instances that got requests from the backlog.
    fed: Vec<usize>,
    is_held: bool,
    /// True if new requests go elsewhere: sequences without waiting requests do not continue.
    expects_no_more: bool,
    next_own: u64,
    /// Idle sequences that keep states.
    resting: RestingSlots,
    /// Sequences whose states were freed, the latest last, while they are remembered for their next request.
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
    /// The number in the backlog.
    Backlog(u64),
    /// Its instance broke; its next request gets this error.
    Lost(Error),
    /// Its states were freed for those of others; its next request gets that as the reason.
    GaveWay,
}

/// The place of a request's sequence, if the request may be added there.
enum FoundSequence {
    Slot { instance: usize, slot: u32 },
    Backlog(u64),
    Nowhere,
}

/// The result of adding a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PushedRequest {
    /// The instance that may execute it next, and true if it may join the batch that waits to grow; `None` if other requests
    /// come first.
    pub next: Option<(usize, bool)>,
    /// The sequence that this request restarts, although its previous run has not ended.
    pub restarts: Option<CorrelationId>,
}

/// The reason why a request was not accepted.
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
    /// The states of its sequence were freed for those of others.
    GaveWay,
}

/// The reason why an accepted request is not executed.
#[derive(Clone, Debug)]
pub(crate) enum SequenceDrop {
    /// Its client has gone.
    Abandoned,
    /// Its sequence is over, because the client of an earlier request has gone.
    Cancelled,
    /// Its sequence waited for a slot for longer than one of its requests allowed.
    Expired,
    /// Its instance broke.
    Lost(Error),
}

impl<T: SequenceRequest> Sequences<T> {
    /// Creates the sequences. `batcher` makes the queue of an instance under the oldest strategy.
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

    /// Returns the number of requests that wait, in slots and in the backlog.
    pub fn len(&self) -> usize {
        self.backlog.len() + self.in_slots()
    }

    /// Returns the number of sequences that may continue, including those that wait for a slot.
    #[cfg(test)]
    pub fn live_count(&self) -> usize {
        self.live.len()
    }

    /// Returns the number of items that a batch of this instance could have now.
    pub fn ready_items(&self, instance: usize) -> u64 {
        self.instances.get(instance).map_or(0, InstanceSlots::ready_items)
    }

    fn in_slots(&self) -> usize {
        self.instances.iter().map(|slots| slots.queued).sum()
    }

    /// Accepts a request at `now`, or returns it with the reason why not.
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

    /// Returns the place of a request's sequence, and true if the request begins the sequence again.
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

    /// Begins a sequence with its first request.
    fn begin(&mut self, request: T, owner: Owner, now: Instant) -> Option<(usize, bool)> {
        if self.free_slot().is_none() {
            self.end_idle(now);
        }
        let id = request.correlation_id().clone();
        // Sequences that already wait come first.
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
            // Another sequence with this name may begin elsewhere.
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

    /// Returns the slot for the next sequence, with its instance.
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

    /// Gives a free slot to the sequence that has waited longest.
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

    /// Returns true if requests are still added to this sequence of the backlog.
    fn is_collected(&self, id: &CorrelationId, number: u64) -> bool {
        let live = self.live.get(id);
        live.is_some_and(|live| matches!(live.place, SequencePlace::Backlog(n) if n == number))
    }

    /// Decides what this instance does now. `is_closed` is true if no more requests will come.
    pub fn decide(&mut self, instance: usize, now: Instant, is_closed: bool) -> Decision {
        self.expire_backlog(now);
        match is_closed || self.expects_no_more {
            // None of the quiet sequences will continue.
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

    /// Takes the requests of a decision for this instance. `None` is a batch row without a request.
    pub fn take(
        &mut self,
        instance: usize,
        count: usize,
        now: Instant,
    ) -> Vec<Option<Step<T, T::States>>> {
        let slots = &mut self.instances[instance];
        let steps = slots.take(&self.rules.strategy, count);
        // For an iterative sequence, the end is known only after its request was executed.
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

    /// Ends requests that this instance has executed, at `now`.
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
                self.restart_idle_time(instance, ticket, now);
            }
            if is_over && is_current {
                let rest = self.end_sequence(instance, ticket.slot, now);
                self.drop_all(rest, &SequenceDrop::Cancelled);
            } else if is_current {
                self.note_rest(instance, ticket.slot);
            }
        }
    }

    /// Restarts the idle time of a sequence, which counts from the end of its last request.
    fn restart_idle_time(&mut self, instance: usize, ticket: SlotTicket, now: Instant) {
        let state = self.instances[instance].slots.get(ticket.slot as usize);
        let id = state.and_then(|state| state.sequence.as_ref());
        if let Some(live) = id.and_then(|id| self.live.get_mut(id)) {
            live.last_used = now;
        }
    }

    /// Ends the sequence of a slot and gives the slot to another. Returns the requests that waited there.
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

    /// Removes the requests that are not executed; the caller must answer each.
    pub fn take_dropped(&mut self) -> Vec<(T, SequenceDrop)> {
        std::mem::take(&mut self.dropped)
    }

    /// Returns the instances that got requests without a wake-up.
    pub fn take_fed(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.fed)
    }

    /// Returns true if requests are held until enough of them wait. Once released, they are never held again.
    pub fn is_held(&mut self, is_closed: bool) -> bool {
        let has_enough = self.in_slots() >= self.rules.hold.queued
            && self.backlog.len() >= self.rules.hold.backlogged;
        if self.is_held && (has_enough || is_closed) {
            self.is_held = false;
            self.fed.extend(0..self.instances.len());
        }
        self.is_held
    }

    /// Returns a number that no sequence has.
    fn own_number(&mut self) -> u64 {
        while self.live.contains_key(&CorrelationId::Number(self.next_own)) {
            self.next_own += 1;
        }
        let number = self.next_own;
        self.next_own += 1;
        number
    }
}

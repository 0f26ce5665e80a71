//! The slots of one instance, each with the requests of a sequence, and the choice of those executed next.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use galatea_types::CorrelationId;

use super::{
    key::SequenceRequest,
    rules::Strategy,
    step::{SlotTicket, Step, StepEnd},
};
use crate::queue::{
    Backlog, Decision, DropReason, Extent, GrowingBatch, JoinRules, Placement, QueueEntry,
};

/// A place for one sequence.
pub(super) struct Slot<T: SequenceRequest> {
    /// The sequence whose requests are added here; `None` if no more are added.
    pub sequence: Option<CorrelationId>,
    /// True if it has a sequence that is not over, and so is not free.
    pub is_taken: bool,
    generation: u64,
    queue: VecDeque<T>,
    /// True if a request of it is being executed, is about to be, or has not left its states yet.
    is_busy: bool,
    /// The generation of the sequence whose request is executing, set when it was taken.
    executing: Option<u64>,
    states: T::States,
    /// Its place in the order of idle sequences; 0 if it has none.
    rest: u64,
}

impl<T: SequenceRequest> Slot<T> {
    fn new() -> Self {
        Self {
            sequence: None,
            is_taken: false,
            generation: 0,
            queue: VecDeque::new(),
            is_busy: false,
            executing: None,
            states: T::States::default(),
            rest: 0,
        }
    }

    fn push(&mut self, request: T) {
        if self.queue.capacity() == 0 {
            // Most sequences wait for an answer before they send more.
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(request);
    }

    /// Takes the oldest request. A sequence without waiting requests keeps no memory for them.
    fn pop(&mut self) -> Option<T> {
        let request = self.queue.pop_front();
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
        request
    }

    /// Returns true if no request of its sequence waits or is being executed.
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty() && !self.is_busy
    }

    /// Marks its sequence as idle until it gets a request. Returns true if it keeps states.
    pub fn begin_rest(&mut self, turn: u64) -> bool {
        let keeps = self.is_quiet() && self.sequence.is_some() && self.state_bytes() > 0;
        self.rest = if keeps { turn } else { 0 };
        keeps
    }

    /// Returns true if it has been idle since this turn.
    pub fn still_rests(&self, turn: u64) -> bool {
        self.rest == turn && self.is_quiet() && self.sequence.is_some()
    }

    /// Returns the bytes counted for the states of its sequence.
    pub fn state_bytes(&self) -> usize {
        T::state_bytes(&self.states)
    }

    /// Takes the states of its sequence, which is over.
    pub fn take_states(&mut self) -> T::States {
        std::mem::take(&mut self.states)
    }

    fn forget_sequence(&mut self) {
        self.generation += 1;
        self.states = T::States::default();
        self.rest = 0;
        self.sequence = None;
        self.is_taken = false;
    }

    /// Makes the step that executes this request of the slot.
    fn step(&mut self, slot: u32, request: T) -> Step<T, T::States> {
        let is_first = request.is_start();
        if is_first {
            self.generation += 1;
            self.states = T::States::default();
        }
        let ticket = SlotTicket { slot, generation: self.generation };
        Step { ticket, states: std::mem::take(&mut self.states), is_first, request }
    }
}

/// A request that is next in its slot.
pub(crate) struct Head<T> {
    pub slot: u32,
    pub request: T,
}

impl<T: QueueEntry> QueueEntry for Head<T> {
    fn item_count(&self) -> u64 {
        self.request.item_count()
    }

    fn queued_at(&self) -> Instant {
        self.request.queued_at()
    }

    fn is_abandoned(&self) -> bool {
        self.request.is_abandoned()
    }

    fn placement(&self) -> Placement {
        // Queue policies belong to the dynamic batcher; a sequence batcher has none.
        Placement::default()
    }

    fn client(&self) -> Option<u64> {
        None
    }

    fn set_arrival(&mut self, arrival: u64) {
        self.request.set_arrival(arrival);
    }

    fn joins(&self, first: &Self, extent: &mut Extent, rules: &JoinRules) -> bool {
        self.request.joins(&first.request, extent, rules)
    }

    fn can_join(&self, other: &Self, rules: &JoinRules) -> bool {
        self.request.can_join(&other.request, rules)
    }
}

/// The slots of one instance.
pub(super) struct InstanceSlots<T: SequenceRequest> {
    pub slots: Vec<Slot<T>>,
    /// True if the instance works, so that sequences may begin in its slots.
    pub is_available: bool,
    /// The time at which a sequence may have been idle too long; `None` if there is none.
    pub idle_check: Option<Instant>,
    next: Next<T>,
    /// The number of requests in the slots and in `next`.
    pub queued: usize,
}

/// The requests that may be executed next.
enum Next<T> {
    /// The numbers of slots with requests.
    Direct(BTreeSet<u32>),
    /// One request of each slot that has any and executes none.
    Oldest(Box<Backlog<Head<T>>>),
}

impl<T: SequenceRequest> InstanceSlots<T> {
    /// Creates the slots. `batcher` decides on batches under the oldest strategy and is `None` under the direct one.
    pub fn new(batcher: Option<Backlog<Head<T>>>) -> Self {
        let next = batcher.map_or_else(
            || Next::Direct(BTreeSet::new()),
            |batcher| Next::Oldest(Box::new(batcher)),
        );
        Self { slots: Vec::new(), is_available: false, idle_check: None, next, queued: 0 }
    }

    /// Sets the time of the next idle check, now that a sequence may become idle.
    pub fn note_idle_check(&mut self, now: Instant, max_idle: Duration) {
        if self.idle_check.is_none() {
            self.idle_check = now.checked_add(max_idle);
        }
    }

    /// Returns the slots whose sequence has no waiting or executing request.
    pub fn quiet(&self) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().zip(0..);
        slots.filter(|(slot, _)| slot.is_taken && slot.is_quiet()).map(|(_, number)| number)
    }

    /// Returns the number of items that a batch could have now.
    pub fn ready_items(&self) -> u64 {
        match &self.next {
            Next::Direct(ready) => ready.len() as u64,
            Next::Oldest(heads) => heads.item_count(),
        }
    }

    /// Returns the slot of this number, and creates it if it is new.
    pub fn slot_mut(&mut self, slot: u32) -> &mut Slot<T> {
        let index = slot as usize;
        while self.slots.len() <= index {
            self.slots.push(Slot::new());
        }
        &mut self.slots[index]
    }

    /// Appends a request to its slot. Returns true if it may join the batch that waits to grow. Returns `None` if it is
    /// not its turn: no thread needs to look at it then.
    pub fn push(&mut self, slot: u32, request: T) -> Option<bool> {
        self.queued += 1;
        self.slot_mut(slot).push(request);
        self.refresh(slot)
    }

    /// Makes the next request of a slot ready for execution, if there is one and none of the slot is ready. Returns true if it
    /// may join the batch that waits to grow.
    fn refresh(&mut self, slot: u32) -> Option<bool> {
        let state = &mut self.slots[slot as usize];
        match &mut self.next {
            Next::Direct(ready) if state.is_busy || state.queue.is_empty() => {
                ready.remove(&slot);
                None
            }
            Next::Direct(ready) => {
                ready.insert(slot);
                Some(true)
            }
            Next::Oldest(_) if state.is_busy => None,
            Next::Oldest(heads) => {
                let head = Head { slot, request: state.pop()? };
                let fits = heads.fits_next_batch(&head);
                // No request is refused, because the number of waiting requests is unlimited.
                match heads.push(head) {
                    Ok(_) => state.is_busy = true,
                    Err(head) => state.queue.push_front(head.request),
                }
                Some(fits)
            }
        }
    }

    /// Decides what the instance does now. Also returns the slots whose next request is abandoned, with that request if it has
    /// left its slot.
    pub fn decide(
        &mut self,
        strategy: &Strategy,
        now: Instant,
        is_closed: bool,
    ) -> (Decision, Vec<(u32, Option<T>)>) {
        match (&mut self.next, strategy) {
            (Next::Direct(ready), Strategy::Direct { max_delay, enough_slots, .. }) => {
                let is_abandoned = |slot: &u32| {
                    self.slots[*slot as usize].queue.front().is_some_and(QueueEntry::is_abandoned)
                };
                let abandoned: Vec<_> =
                    ready.iter().copied().filter(is_abandoned).map(|slot| (slot, None)).collect();
                if !abandoned.is_empty() {
                    return (Decision::Empty, abandoned);
                }
                let fronts = ready.iter().filter_map(|&s| self.slots[s as usize].queue.front());
                let Some(oldest) = fronts.map(QueueEntry::queued_at).min() else {
                    return (Decision::Empty, Vec::new());
                };
                let until = oldest.checked_add(*max_delay).unwrap_or(now);
                let is_enough = ready.len() as u64 >= *enough_slots;
                if is_closed || is_enough || now >= until {
                    return (Decision::Take(ready.len()), Vec::new());
                }
                (Decision::Wait(GrowingBatch { until, enough_items: *enough_slots }), Vec::new())
            }
            (Next::Oldest(heads), _) => {
                let decision = heads.decide(now, is_closed);
                let dropped = heads.take_dropped().into_iter();
                let dropped: Vec<_> = dropped
                    .map(|(head, _): (Head<T>, DropReason)| (head.slot, Some(head.request)))
                    .collect();
                self.queued -= dropped.len();
                dropped.iter().for_each(|(slot, _)| self.slots[*slot as usize].is_busy = false);
                (decision, dropped)
            }
            // This cannot happen: the slots were created for this strategy.
            (Next::Direct(_), Strategy::Oldest) => (Decision::Empty, Vec::new()),
        }
    }

    /// Takes the requests of a decision. In a direct batch, `None` is a slot without a request that fits into the batch.
    pub fn take(&mut self, strategy: &Strategy, count: usize) -> Vec<Option<Step<T, T::States>>> {
        let steps: Vec<_> = match (&mut self.next, strategy) {
            (Next::Direct(ready), Strategy::Direct { join_rules, .. }) => {
                let Some((&first, &last)) = ready.first().zip(ready.last()) else {
                    return Vec::new();
                };
                let joins: Vec<bool> = {
                    let front = |slot: u32| self.slots[slot as usize].queue.front();
                    let template = front(first);
                    let joins = |slot| {
                        let pair = front(slot).zip(template).filter(|_| ready.contains(&slot));
                        pair.is_some_and(|(request, first)| first.can_join(request, join_rules))
                    };
                    (0..=last).map(joins).collect()
                };
                let slots = self.slots.iter_mut().zip(0..).zip(joins);
                slots
                    .map(|((slot, number), joins)| {
                        let request = if joins { slot.pop() } else { None };
                        request.map(|request| slot.step(number, request))
                    })
                    .collect()
            }
            (Next::Oldest(heads), _) => {
                let heads = heads.take(count).into_iter();
                heads
                    .map(|head| Some(self.slots[head.slot as usize].step(head.slot, head.request)))
                    .collect()
            }
            (Next::Direct(_), Strategy::Oldest) => Vec::new(),
        };
        for step in steps.iter().flatten() {
            let state = &mut self.slots[step.ticket.slot as usize];
            state.is_busy = true;
            state.executing = Some(step.ticket.generation);
            self.queued -= 1;
            if let Next::Direct(_) = self.next {
                self.refresh(step.ticket.slot);
            }
        }
        steps
    }

    /// Ends an executed request and keeps its states. Returns a request that would be executed again if its sequence is over.
    /// A request that was lost with its instance changes nothing.
    pub fn finish(&mut self, end: StepEnd<T, T::States>) -> Option<T> {
        let SlotTicket { slot, generation } = end.ticket;
        let state = self.slots.get_mut(slot as usize);
        let Some(state) = state.filter(|state| state.executing == Some(generation)) else {
            return end.again;
        };
        state.is_busy = false;
        state.executing = None;
        let mut rest = end.again;
        if state.generation == generation {
            state.states = end.states;
            if let Some(request) = rest.take() {
                state.queue.push_front(request);
                self.queued += 1;
            }
        }
        self.refresh(slot);
        rest
    }

    /// Returns true if the slot still has the sequence that was executed.
    pub fn is_current(&self, ticket: SlotTicket) -> bool {
        self.slots.get(ticket.slot as usize).is_some_and(|s| s.generation == ticket.generation)
    }

    /// Ends the sequence of a slot and returns its requests; the slot is free then. A request in execution continues.
    pub fn clear(&mut self, slot: u32) -> Vec<T> {
        let mut requests = self.take_head(slot);
        let Some(state) = self.slots.get_mut(slot as usize) else { return requests };
        requests.extend(state.queue.drain(..));
        state.forget_sequence();
        self.queued -= requests.len();
        self.refresh(slot);
        requests
    }

    /// Takes the request of a slot that waits for its batch under the oldest strategy.
    fn take_head(&mut self, slot: u32) -> Vec<T> {
        let mut taken = Vec::new();
        let Next::Oldest(heads) = &mut self.next else { return taken };
        if !self.slots.get(slot as usize).is_some_and(|state| state.is_busy) {
            return taken;
        }
        // The request is being executed, or among the waiting ones, which keep their order.
        let waiting = heads.len();
        for head in heads.take(waiting) {
            if head.slot == slot {
                taken.push(head.request);
            } else if let Err(head) = heads.push(head) {
                taken.push(head.request);
            }
        }
        if !taken.is_empty() {
            self.slots[slot as usize].is_busy = false;
        }
        taken
    }

    /// Frees the slot after the last request of its sequence was taken. Another sequence there waits for the end of that
    /// execution.
    pub fn release(&mut self, slot: u32) {
        self.slots[slot as usize].forget_sequence();
    }

    /// Ends the sequences of all slots and returns their requests. Requests in execution there are lost.
    pub fn clear_all(&mut self) -> Vec<T> {
        let mut requests = Vec::new();
        if let Next::Oldest(heads) = &mut self.next {
            let waiting = heads.len();
            requests.extend(heads.take(waiting).into_iter().map(|head| head.request));
        }
        for state in &mut self.slots {
            requests.extend(state.queue.drain(..));
            state.is_busy = false;
            state.executing = None;
            state.forget_sequence();
        }
        if let Next::Direct(ready) = &mut self.next {
            ready.clear();
        }
        self.queued = 0;
        self.idle_check = None;
        requests
    }

    /// Returns the slots with an abandoned request. [`InstanceSlots::decide`] finds those whose turn is next under the oldest
    /// strategy.
    pub fn abandoned(&self) -> Vec<u32> {
        let slots = self.slots.iter().zip(0..);
        let is_abandoned = |slot: &Slot<T>| slot.queue.iter().any(QueueEntry::is_abandoned);
        slots.filter(|(slot, _)| is_abandoned(slot)).map(|(_, number)| number).collect()
    }
}

//! How sequences end without a last request: idle, abandoned, waiting too long, or lost with their instance.

use std::time::Instant;

use galatea_types::{CorrelationId, Error};

use super::{
    super::{backlog::WaitingSequence, key::SequenceRequest, slots::InstanceSlots},
    LiveSequence, SequenceDrop, SequencePlace, Sequences,
};

impl<T: SequenceRequest> Sequences<T> {
    /// Ends all sequences of which a request waits that nobody waits for.
    pub fn drop_abandoned(&mut self, now: Instant) {
        for instance in 0..self.instances.len() {
            for slot in self.instances[instance].abandoned() {
                let requests = self.end_sequence(instance, slot, now);
                self.drop_all(requests, &SequenceDrop::Cancelled);
            }
        }
        for (number, waiting) in self.backlog.remove_where(WaitingSequence::is_abandoned) {
            self.drop_waiting(number, waiting, &SequenceDrop::Cancelled);
        }
    }

    /// Drops the sequences of the backlog that have waited for too long.
    pub(super) fn expire_backlog(&mut self, now: Instant) {
        for (number, waiting) in self.backlog.take_expired(now) {
            self.drop_waiting(number, waiting, &SequenceDrop::Expired);
        }
    }

    /// When something is over without any request, or may be.
    pub fn next_event(&self) -> Option<Instant> {
        // While the backlog is empty nothing waits for what an idle sequence has; it is ended all the same.
        let idle = self.instances.iter().filter_map(|slots| slots.idle_check);
        idle.chain(self.backlog.next_expiry()).min()
    }

    /// Ends what is over at `now`: idle sequences, and those that have waited for too long.
    pub fn end_overdue(&mut self, now: Instant) {
        self.expire_backlog(now);
        self.end_idle(now);
    }

    /// Ends this sequence if it has had no request for too long.
    pub(super) fn end_if_idle(&mut self, id: &CorrelationId, now: Instant) {
        let Some(LiveSequence { place: SequencePlace::Slot { instance, .. }, last_used, .. }) =
            self.live.get(id)
        else {
            return;
        };
        let instance = *instance;
        if now.saturating_duration_since(*last_used) >= self.rules.max_idle {
            self.end_idle_of(instance, now);
        }
    }

    pub(super) fn end_idle(&mut self, now: Instant) {
        (0..self.instances.len()).for_each(|instance| self.end_idle_of(instance, now));
    }

    /// Ends the sequences of an instance that have had no request for too long, and notes when to look again.
    pub(super) fn end_idle_of(&mut self, instance: usize, now: Instant) {
        let Some(slots) = self.instances.get_mut(instance) else { return };
        if slots.idle_check.is_none_or(|check| now < check) {
            return;
        }
        let max_idle = self.rules.max_idle;
        let (mut over, mut next) = (Vec::new(), None::<Instant>);
        for (state, slot) in slots.slots.iter().zip(0..) {
            let live = state.sequence.as_ref().and_then(|id| self.live.get(id));
            let Some(mut end) = live.and_then(|live| live.last_used.checked_add(max_idle)) else {
                continue;
            };
            if end <= now && state.is_quiet() {
                over.push(slot);
                continue;
            }
            if end <= now {
                // It has something to do: looked at again when that could be over.
                end = now.checked_add(max_idle).unwrap_or(now);
            }
            next = Some(next.map_or(end, |next| next.min(end)));
        }
        slots.idle_check = next;
        for slot in over {
            self.end_sequence(instance, slot, now);
        }
        self.forget_lost(now);
    }

    /// New requests go elsewhere from now on, but for those that are on their way: sequences of which nothing waits end, now
    /// and as soon as what waits of them was executed.
    pub fn expect_no_more(&mut self, now: Instant) {
        self.expects_no_more = true;
        (0..self.instances.len()).for_each(|instance| self.end_quiet(instance, now));
    }

    /// Ends the sequences of an instance of which nothing waits.
    pub(super) fn end_quiet(&mut self, instance: usize, now: Instant) {
        let Some(slots) = self.instances.get(instance) else { return };
        let quiet: Vec<u32> = slots.quiet().collect();
        for slot in quiet {
            self.end_sequence(instance, slot, now);
        }
    }

    /// Sequences that were lost are remembered for as long as they could have been idle.
    fn forget_lost(&mut self, now: Instant) {
        let max_idle = self.rules.max_idle;
        self.live.retain(|_, live| {
            !matches!(live.place, SequencePlace::Lost(_) | SequencePlace::GaveWay)
                || now.saturating_duration_since(live.last_used) < max_idle
        });
    }

    /// The instance works: sequences begin there.
    pub fn instance_works(&mut self, instance: usize, now: Instant) {
        let Some(slots) = self.instances.get_mut(instance) else { return };
        if std::mem::replace(&mut slots.is_available, true) {
            return;
        }
        let slots = slots.slots.iter().zip(0..);
        let free: Vec<u32> = slots.filter(|(s, _)| !s.is_taken).map(|(_, slot)| slot).collect();
        self.free.extend(free.into_iter().map(|slot| (slot, instance)));
        while !self.backlog.is_empty()
            && let Some((slot, instance)) = self.free_slot()
        {
            self.instances[instance].slot_mut(slot);
            self.refill(instance, slot, now);
        }
    }

    /// The instance does not work any more: the sequences that it had are lost, and what waits of them is dropped.
    pub fn instance_lost(&mut self, instance: usize, reason: &Error, now: Instant) {
        let Some(slots) = self.instances.get_mut(instance) else { return };
        slots.is_available = false;
        self.free.retain(|(_, of)| *of != instance);
        for slot in &mut slots.slots {
            if let Some(live) = slot.sequence.as_ref().and_then(|id| self.live.get_mut(id)) {
                live.place = SequencePlace::Lost(reason.clone());
                live.last_used = now;
            }
        }
        let requests = slots.clear_all();
        self.forget_lost(now);
        self.drop_all(requests, &SequenceDrop::Lost(reason.clone()));
    }

    /// Removes all requests: nothing will execute them.
    pub fn take_all(&mut self) -> Vec<T> {
        let mut requests: Vec<T> =
            self.instances.iter_mut().flat_map(InstanceSlots::clear_all).collect();
        let waiting = self.backlog.remove_where(|_| true);
        requests.extend(waiting.into_iter().flat_map(|(_, waiting)| waiting.requests));
        self.live.clear();
        for (slots, instance) in self.instances.iter().zip(0..).filter(|(s, _)| s.is_available) {
            self.free.extend((0..).take(slots.slots.len()).map(|slot| (slot, instance)));
        }
        requests
    }
}

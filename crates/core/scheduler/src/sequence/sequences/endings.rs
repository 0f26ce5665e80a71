//! Ends sequences without a last request: idle, abandoned or expired ones, and those lost with their instance.

use std::time::Instant;

use galatea_types::{CorrelationId, Error};

use super::{
    super::{backlog::WaitingSequence, key::SequenceRequest, slots::InstanceSlots},
    LiveSequence, SequenceDrop, SequencePlace, Sequences,
};

impl<T: SequenceRequest> Sequences<T> {
    /// Ends all sequences with a waiting request whose client has gone.
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

    /// Drops the sequences of the backlog that waited too long.
    pub(super) fn expire_backlog(&mut self, now: Instant) {
        for (number, waiting) in self.backlog.take_expired(now) {
            self.drop_waiting(number, waiting, &SequenceDrop::Expired);
        }
    }

    /// Returns the time at which a sequence is over without a request, or may be.
    pub fn next_event(&self) -> Option<Instant> {
        // While the backlog is empty, no sequence waits for the slot of an idle one; it is ended all the same.
        let idle = self.instances.iter().filter_map(|slots| slots.idle_check);
        idle.chain(self.backlog.next_expiry()).min()
    }

    /// Ends sequences that are over at `now`: idle ones, and those that waited too long.
    pub fn end_overdue(&mut self, now: Instant) {
        self.expire_backlog(now);
        self.end_idle(now);
    }

    /// Ends this sequence if it had no request for too long.
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

    /// Ends the sequences of an instance that had no request for too long, and records when to look again.
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
                // It is busy: look again when it could be idle for too long.
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

    /// Declares that new requests go elsewhere, except those on their way. Sequences without waiting requests end now, the
    /// others as soon as their waiting requests are executed.
    pub fn expect_no_more(&mut self, now: Instant) {
        self.expects_no_more = true;
        (0..self.instances.len()).for_each(|instance| self.end_quiet(instance, now));
    }

    /// Ends the sequences of an instance without waiting requests.
    pub(super) fn end_quiet(&mut self, instance: usize, now: Instant) {
        let Some(slots) = self.instances.get(instance) else { return };
        let quiet: Vec<u32> = slots.quiet().collect();
        for slot in quiet {
            self.end_sequence(instance, slot, now);
        }
    }

    /// Forgets lost sequences after the time that they could have been idle.
    fn forget_lost(&mut self, now: Instant) {
        let max_idle = self.rules.max_idle;
        self.live.retain(|_, live| {
            !matches!(live.place, SequencePlace::Lost(_) | SequencePlace::GaveWay)
                || now.saturating_duration_since(live.last_used) < max_idle
        });
    }

    /// Records that the instance works, so that sequences begin there.
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

    /// Records that the instance is broken: its sequences are lost, and their waiting requests are dropped.
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

    /// Removes all requests, because nothing will execute them.
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

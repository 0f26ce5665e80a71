//! Idle sequences that keep states. If memory for states is needed, the one that has been idle longest ends first.

use std::{collections::VecDeque, time::Instant};

use galatea_types::CorrelationId;

use super::{super::key::SequenceRequest, LiveSequence, SequencePlace, Sequences};

/// The largest number of sequences that are remembered after their states were freed. Their next request gets that as the
/// reason; the next request of others is told that its sequence has not begun.
const MAX_REMEMBERED: usize = 1024;

/// The largest number of outdated entries in the order, in addition to one for each slot.
const MAX_SURPLUS: usize = 64;

/// Slots in the order in which they became idle. A slot that was busy since is skipped: it has, or will get, a later place.
#[derive(Default)]
pub(super) struct RestingSlots {
    order: VecDeque<SlotRest>,
    turns: u64,
}

#[derive(Clone, Copy)]
struct SlotRest {
    turn: u64,
    instance: usize,
    slot: u32,
}

impl<T: SequenceRequest> Sequences<T> {
    /// Records the end of a request in this slot. The slot is idle from now on if there is no other request.
    pub(super) fn note_rest(&mut self, instance: usize, slot: u32) {
        let turn = self.resting.turns + 1;
        let slots = self.instances.get_mut(instance).map(|slots| &mut slots.slots);
        let state = slots.and_then(|slots| slots.get_mut(slot as usize));
        if !state.is_some_and(|state| state.begin_rest(turn)) {
            return;
        }
        self.resting.turns = turn;
        self.resting.order.push_back(SlotRest { turn, instance, slot });
        let slots: usize = self.instances.iter().map(|slots| slots.slots.len()).sum();
        if self.resting.order.len() > 2 * slots + MAX_SURPLUS {
            let order = std::mem::take(&mut self.resting.order);
            self.resting.order =
                order.into_iter().filter(|rest| self.resting_bytes(*rest).is_some()).collect();
        }
    }

    /// Returns the bytes that the sequence of this slot keeps, if it has been idle since.
    fn resting_bytes(&self, SlotRest { turn, instance, slot }: SlotRest) -> Option<usize> {
        let state = self.instances.get(instance)?.slots.get(slot as usize)?;
        state.still_rests(turn).then(|| state.state_bytes())
    }

    /// Returns the slot that has been idle longest.
    fn longest_rest(&mut self) -> Option<SlotRest> {
        while let Some(&rest) = self.resting.order.front() {
            if self.resting_bytes(rest).is_some() {
                return Some(rest);
            }
            self.resting.order.pop_front();
        }
        None
    }

    /// Returns when the sequence became idle that would end first.
    pub fn resting_since(&mut self) -> Option<Instant> {
        let SlotRest { instance, slot, .. } = self.longest_rest()?;
        let id = self.instances.get(instance)?.slots.get(slot as usize)?.sequence.as_ref()?;
        Some(self.live.get(id)?.last_used)
    }

    /// Returns the bytes that idle sequences keep. Stops counting at `enough`.
    pub fn bytes_at_rest(&self, enough: usize) -> usize {
        let mut bytes = 0_usize;
        for rest in &self.resting.order {
            bytes = bytes.saturating_add(self.resting_bytes(*rest).unwrap_or(0));
            if bytes >= enough {
                break;
            }
        }
        bytes
    }

    /// Ends the sequence that has been idle longest, and remembers that for its next request. Returns its name and its states,
    /// which the caller must drop outside of any lock.
    pub fn give_way(&mut self, now: Instant) -> Option<(CorrelationId, T::States)> {
        let SlotRest { instance, slot, .. } = self.longest_rest()?;
        let state = self.instances.get_mut(instance)?.slot_mut(slot);
        let (id, states) = (state.sequence.clone()?, state.take_states());
        let owner = self.live.get(&id).map(|live| live.owner);
        // It is idle, so no request waits there.
        self.end_sequence(instance, slot, now);
        if let Some(owner) = owner {
            self.remember(
                id.clone(),
                LiveSequence { place: SequencePlace::GaveWay, owner, last_used: now },
            );
        }
        Some((id, states))
    }

    fn remember(&mut self, id: CorrelationId, live: LiveSequence) {
        if self.gave_way.len() >= MAX_REMEMBERED
            && let Some(oldest) = self.gave_way.pop_front()
            && self
                .live
                .get(&oldest)
                .is_some_and(|live| matches!(live.place, SequencePlace::GaveWay))
        {
            self.live.remove(&oldest);
        }
        self.gave_way.push_back(id.clone());
        self.live.insert(id, live);
    }
}

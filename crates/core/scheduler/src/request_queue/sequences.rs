//! Requests of sequences in a queue: each goes to the instance that has its sequence. Idle sequences end if others need
//! their memory for states.

use std::time::Instant;

use galatea_types::CorrelationId;

use super::{AcceptedRequest, Refusal, RequestQueue, State, waiting::Waiting};
use crate::{
    parking::Locked,
    sequence::{SequenceRefusal, SequenceRequest, Sequences, StepEnd},
    sequence_memory::RestingSequences,
};

impl<T: SequenceRequest> RequestQueue<T> {
    /// Ends a step of a sequence that instance `index` took and whose states arrived after `execute` had returned.
    pub fn finish_step(&self, index: usize, step: StepEnd<T, T::States>) {
        let mut state = self.parking.lock();
        state.finish_steps(index, vec![step]);
        state.wake_fed(index);
        state.wake_lane(index);
        if state.is_closed {
            state.wake_sleepers();
        }
    }

    /// Accepts a request of a sequence, or returns it with the reason why not.
    pub(super) fn push_of_sequence(
        &self,
        mut state: Locked<'_, State<T>>,
        request: T,
    ) -> Result<AcceptedRequest, (T, Refusal)> {
        let now = state.now();
        let Waiting::Sequences(sequences) = &mut state.waiting else {
            return Err((request, Refusal::OfSequence(SequenceRefusal::NoSequence)));
        };
        let pushed = sequences.push(request, now);
        let event = sequences.next_event();
        let pushed = match pushed {
            Ok(pushed) => pushed,
            Err((request, refusal)) => {
                state.wake_fed(usize::MAX);
                return Err((request, Refusal::OfSequence(refusal)));
            }
        };
        if let Some(event) = event {
            state.look_by(event);
        }
        let is_held = state.is_held();
        state.wake_fed(usize::MAX);
        match pushed.next {
            Some((instance, fits)) if !is_held => {
                state.in_lane(instance).wake_for_new(true, |state, batch| {
                    batch.is_ended_by(state.waiting.item_count(instance), None, fits)
                });
            }
            _ => drop(state),
        }
        Ok(AcceptedRequest { restarts: pushed.restarts, turn: None })
    }
}

impl<T: SequenceRequest> Locked<'_, State<T>> {
    /// Ends steps of sequences that instance `index` has executed.
    pub(super) fn finish_steps(&mut self, index: usize, steps: Vec<StepEnd<T, T::States>>) {
        if steps.is_empty() {
            return;
        }
        let now = self.now();
        if let Waiting::Sequences(sequences) = &mut self.waiting {
            sequences.finish(index, steps, now);
        }
    }

    /// Wakes the instances that got work without a wake-up, except the one that asks.
    pub(super) fn wake_fed(&mut self, asking: usize) {
        for lane in self.waiting.take_fed() {
            if lane != asking {
                self.wake_lane(lane);
            }
        }
    }
}

impl<T: SequenceRequest> RequestQueue<T> {
    fn with_sequences<R>(&self, ask: impl FnOnce(&mut Sequences<T>) -> R) -> Option<R> {
        match &mut self.parking.lock().waiting {
            Waiting::Sequences(sequences) => Some(ask(sequences)),
            Waiting::Requests(_) => None,
        }
    }
}

impl<T: SequenceRequest<States: Send> + Send> RestingSequences for RequestQueue<T> {
    fn resting_since(&self) -> Option<Instant> {
        self.with_sequences(Sequences::resting_since).flatten()
    }

    fn bytes_at_rest(&self, enough: usize) -> usize {
        self.with_sequences(|sequences| sequences.bytes_at_rest(enough)).unwrap_or(0)
    }

    fn give_way(&self) -> Option<(CorrelationId, usize)> {
        let (id, states) = {
            let mut state = self.parking.lock();
            let now = state.now();
            let Waiting::Sequences(sequences) = &mut state.waiting else { return None };
            let gone = sequences.give_way(now)?;
            // A sequence that waited for the slot has it now.
            state.look_by(now);
            state.wake_fed(usize::MAX);
            gone
        };
        Some((id, T::state_bytes(&states)))
    }
}

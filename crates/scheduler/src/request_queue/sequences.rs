//! Requests of sequences in a queue: each goes to the instance that has its sequence.

use super::{Accepted, Refusal, RequestQueue, State, waiting::Waiting};
use crate::{
    parking::Locked,
    sequence::{OfSequence, SequenceRefusal, StepEnd},
};

impl<T: OfSequence> RequestQueue<T> {
    /// Accepts a request of a sequence, or gives it back with the reason why not.
    pub(super) fn push_of_sequence(
        &self,
        mut state: Locked<'_, State<T>>,
        request: T,
    ) -> Result<Accepted, (T, Refusal)> {
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
        Ok(Accepted { restarts: pushed.restarts, turn: None })
    }
}

impl<T: OfSequence> Locked<'_, State<T>> {
    /// Steps of sequences that instance `index` took were executed.
    pub(super) fn finish_steps(&mut self, index: usize, steps: Vec<StepEnd<T, T::States>>) {
        if steps.is_empty() {
            return;
        }
        let now = self.now();
        if let Waiting::Sequences(sequences) = &mut self.waiting {
            sequences.finish(index, steps, now);
        }
    }

    /// Wakes the instances that have got work of which nobody told them, but for the one that asks.
    pub(super) fn wake_fed(&mut self, asking: usize) {
        for lane in self.waiting.take_fed() {
            if lane != asking {
                self.wake_lane(lane);
            }
        }
    }
}

//! The tensors of one stage of an ensemble while a request runs through it.

use std::sync::Arc;

use galatea_types::{Buffer, DataType, Shape, Tensor};

use super::{graph::Step, sequence_info::SequenceInfo, shape::fit};

/// An ensemble tensor. Its name is its reader's business.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub data_type: DataType,
    pub shape: Shape,
    pub data: Buffer,
    /// Of the request it comes from; 0 where its model does not batch.
    pub batch_size: u32,
    /// `None`: as in the request to the ensemble.
    pub sequence: Option<Arc<SequenceInfo>>,
    /// Written by a step rather than by the client.
    pub is_computed: bool,
}

impl Value {
    /// The tensor as its reader wants it: see [`fit`].
    pub fn to_tensor(&self, name: &Arc<str>, dims: &Shape, is_batched: bool) -> Tensor {
        Tensor {
            name: name.clone(),
            data_type: self.data_type,
            shape: fit(self.shape.clone(), dims, is_batched, self.batch_size),
            data: self.data.clone(),
        }
    }
}

#[derive(Debug, Default)]
enum Slot {
    #[default]
    Empty,
    /// Known not to come: an optional input, or an output the model left out.
    Absent,
    Set {
        value: Value,
        readers_left: usize,
    },
    /// Every reader has had it.
    Consumed,
}

/// The tensors of one stage, once; a stage behind a decoupled step has a round per response.
#[derive(Debug)]
pub(super) struct StageRound {
    pub stage: usize,
    slots: Vec<Slot>,
    /// Steps of this round in flight.
    pub in_flight: usize,
    pub is_answered: bool,
}

impl StageRound {
    pub fn new(stage: usize, slots: usize) -> Self {
        let slots = std::iter::repeat_with(Slot::default).take(slots).collect();
        Self { stage, slots, in_flight: 0, is_answered: false }
    }

    /// Sets a tensor; false when it is set already: the first one counts.
    pub fn set(&mut self, slot: usize, value: Option<Value>, readers: usize) -> bool {
        let Some(slot @ Slot::Empty) = self.slots.get_mut(slot) else { return false };
        *slot = match value {
            None => Slot::Absent,
            Some(_) if readers == 0 => Slot::Consumed,
            Some(value) => Slot::Set { value, readers_left: readers },
        };
        true
    }

    pub fn is_set(&self, slot: usize) -> bool {
        !matches!(self.slots.get(slot), None | Some(Slot::Empty))
    }

    pub fn get(&self, slot: usize) -> Option<&Value> {
        match self.slots.get(slot) {
            Some(Slot::Set { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// One reader has had the tensor. The last one drops it.
    pub fn release(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else { return };
        if let Slot::Set { readers_left, .. } = slot {
            *readers_left -= 1;
            if *readers_left == 0 {
                *slot = Slot::Consumed;
            }
        }
    }

    /// The step has read its tensors. One that feeds several of its inputs was still read once.
    pub fn release_inputs(&mut self, step: &Step) {
        for (position, input) in step.inputs.iter().enumerate() {
            let earlier = step.inputs.get(..position).unwrap_or_default();
            if earlier.iter().all(|e| e.slot != input.slot) {
                self.release(input.slot);
            }
        }
    }
}

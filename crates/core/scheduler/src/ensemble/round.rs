//! The tensors of one stage of an ensemble while a request runs through it.

use std::sync::Arc;

use galatea_types::{Buffer, DataType, Shape, Tensor};

use super::{graph::Step, sequence_info::SequenceInfo, shape::fit};

/// An ensemble tensor. It has no name: each of its readers has its own name for it.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub data_type: DataType,
    pub shape: Shape,
    pub data: Buffer,
    /// The batch size of the request it comes from; 0 if its model does not batch.
    pub batch_size: u32,
    /// The sequence of the tensor; `None` if it is that of the request to the ensemble.
    pub sequence: Option<Arc<SequenceInfo>>,
    /// True if a step wrote it, false if the client sent it.
    pub is_computed: bool,
}

impl Value {
    /// Returns the tensor in the shape that its reader wants: see [`fit`].
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
    /// The tensor will not come: an optional input, or an output that the model left out.
    Absent,
    Set {
        value: Value,
        readers_left: usize,
    },
    /// All readers have read it.
    Consumed,
}

/// The tensors of one round of a stage. A stage behind a decoupled step has a round for each response.
#[derive(Debug)]
pub(super) struct StageRound {
    pub stage: usize,
    slots: Vec<Slot>,
    /// The number of steps of this round in flight.
    pub in_flight: usize,
    pub is_answered: bool,
}

impl StageRound {
    pub fn new(stage: usize, slots: usize) -> Self {
        let slots = std::iter::repeat_with(Slot::default).take(slots).collect();
        Self { stage, slots, in_flight: 0, is_answered: false }
    }

    /// Sets a tensor. Returns false if it is already set; the first value is kept.
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

    /// Marks the tensor as read by one reader. The last reader drops it.
    pub fn release(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else { return };
        if let Slot::Set { readers_left, .. } = slot {
            *readers_left -= 1;
            if *readers_left == 0 {
                *slot = Slot::Consumed;
            }
        }
    }

    /// Releases the tensors that the step has read. A tensor that feeds several of its inputs counts as one read.
    pub fn release_inputs(&mut self, step: &Step) {
        for (position, input) in step.inputs.iter().enumerate() {
            let earlier = step.inputs.get(..position).unwrap_or_default();
            if earlier.iter().all(|e| e.slot != input.slot) {
                self.release(input.slot);
            }
        }
    }
}

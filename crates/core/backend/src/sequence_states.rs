//! Tensors that a model keeps from one request of a sequence to the next.

use std::{fmt, sync::Arc};

use galatea_types::{
    AlignedBlock, Buffer, Code, Error, InferRequest, Memory, Parameters, Result, Tensor,
};

/// Counts the memory for states of sequences of all models, and refuses too large ones.
pub trait StateMemory: fmt::Debug + Send + Sync {
    /// Takes this many more bytes.
    ///
    /// # Errors
    /// `Exhausted` if fewer are free and none can be freed.
    fn take(&self, bytes: usize) -> Result<()>;

    /// Gives back this many of the bytes that were taken.
    fn give_back(&self, bytes: usize);
}

/// The states of one sequence. The scheduler passes them with a request, the model's outputs replace them, and the scheduler
/// takes them out with the outcome. The scheduler decides which states exist.
///
/// New values are counted by the [`StateMemory`], if there is one, until they are dropped. A clone has the same values and
/// counts nothing for them.
#[derive(Clone, Debug, Default)]
pub struct SequenceStates {
    states: Vec<SequenceState>,
    taken: TakenMemory,
}

/// A tensor that one execution returns and the next one of the sequence gets.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceState {
    /// The output of the model that returns it.
    pub output: Arc<str>,
    /// True if clients get the output as well.
    pub is_returned: bool,
    /// The value, with the name of the model's input for it.
    pub value: Tensor,
}

/// Bytes taken from a memory for states, given back when this is dropped.
#[derive(Debug, Default)]
struct TakenMemory {
    memory: Option<Arc<dyn StateMemory>>,
    bytes: usize,
}

impl TakenMemory {
    fn resize(&mut self, bytes: usize) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        match bytes.checked_sub(self.bytes) {
            Some(0) => {}
            Some(more) => memory.take(more)?,
            None => memory.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Clone for TakenMemory {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), bytes: 0 }
    }
}

impl Drop for TakenMemory {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.as_ref().filter(|_| self.bytes > 0) {
            memory.give_back(self.bytes);
        }
    }
}

impl PartialEq for SequenceStates {
    fn eq(&self, other: &Self) -> bool {
        self.states == other.states
    }
}

impl SequenceStates {
    /// Creates these states, each of another output.
    pub fn new(states: Vec<SequenceState>) -> Self {
        Self { states, taken: TakenMemory::default() }
    }

    /// Returns the same states, with new values counted by `memory`.
    pub fn counted_by(mut self, memory: Arc<dyn StateMemory>) -> Self {
        self.taken = TakenMemory { memory: Some(memory), bytes: 0 };
        self
    }

    /// Returns the same states without counting, for an execution whose states are dropped.
    pub fn uncounted(&self) -> Self {
        Self::new(self.states.clone())
    }

    /// Returns the bytes that are counted for them.
    pub fn counted_bytes(&self) -> usize {
        self.taken.bytes
    }

    /// Returns true if there are no states.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the states as inputs for the model.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.states.iter().map(|state| &state.value)
    }

    /// Replaces the state with this output name, in a `request` of its sequence.
    ///
    /// # Errors
    /// `InvalidArg` if there is no such state, or the tensor has another type; `Exhausted` if there is no
    /// memory for it. Then no state has changed.
    pub fn set(&mut self, tensor: Tensor, request: &InferRequest) -> Result<()> {
        if self.is_empty() {
            return Err(Error::invalid_arg(format!(
                "unable to add state '{}'. State configuration is missing for model '{}'.",
                tensor.name, request.model_name
            )));
        }
        let index = self.place_of(&tensor)?;
        self.replace(vec![(index, tensor)], request)
    }

    /// Keeps the states among the outputs of an execution. The other outputs are for the client of `request`.
    /// `is_of_batch`: other requests were executed as well, so that an output may be a part of a larger block.
    ///
    /// # Errors
    /// Those of [`SequenceStates::set`].
    pub(crate) fn keep(
        &mut self,
        result: Result<(Vec<Tensor>, Parameters)>,
        request: &InferRequest,
        is_of_batch: bool,
    ) -> Result<(Vec<Tensor>, Parameters)> {
        if self.is_empty() {
            return result;
        }
        let (outputs, parameters) = result?;
        let mut given = Vec::with_capacity(self.states.len());
        let mut rest = Vec::with_capacity(outputs.len());
        for mut tensor in outputs {
            let Some(state) = self.states.iter().find(|state| state.output == tensor.name) else {
                rest.push(tensor);
                continue;
            };
            if state.is_returned && request.wants_output(&tensor.name) {
                rest.push(tensor.clone());
            }
            let index = self.place_of(&tensor)?;
            if is_of_batch {
                tensor.data = of_its_own(tensor.data);
            }
            given.push((index, tensor));
        }
        self.replace(given, request)?;
        Ok((rest, parameters))
    }

    fn place_of(&self, tensor: &Tensor) -> Result<usize> {
        let place = self.states.iter().zip(0..).find(|(state, _)| state.output == tensor.name);
        let (state, index) = place.ok_or_else(|| {
            Error::invalid_arg(format!("state '{}' is not a valid state name.", tensor.name))
        })?;
        let (given, expected) = (tensor.data_type, state.value.data_type);
        if given != expected {
            return Err(Error::invalid_arg(format!(
                "state '{}' is {given}, but 'sequence_batching.state' has {expected} for it",
                tensor.name
            )));
        }
        Ok(index)
    }

    /// Replaces states by their places, all or none.
    fn replace(&mut self, given: Vec<(usize, Tensor)>, request: &InferRequest) -> Result<()> {
        if given.is_empty() {
            return Ok(());
        }
        if self.taken.memory.is_some() {
            let kept = self.states.iter().zip(0..).map(|(state, index)| {
                let new = given.iter().rev().find(|(place, _)| *place == index);
                bytes_of(new.map_or(&state.value, |(_, tensor)| tensor))
            });
            let bytes = kept.fold(0, usize::saturating_add);
            self.taken.resize(bytes).map_err(|error| of_sequence(error, request))?;
        }
        for (index, tensor) in given {
            if let Some(state) = self.states.get_mut(index) {
                let name = state.value.name.clone();
                state.value = Tensor { name, ..tensor };
            }
        }
        Ok(())
    }
}

/// Adds the name of the sequence to an error about missing memory; other errors name the cause themselves.
fn of_sequence(error: Error, request: &InferRequest) -> Error {
    match error.code() {
        Code::Exhausted => error.prefixed(format_args!(
            "inference request for sequence {} to model '{}': ",
            request.correlation_id, request.model_name
        )),
        _ => error,
    }
}

/// Returns the bytes of host memory that a tensor takes. Memory of devices does not count.
fn bytes_of(tensor: &Tensor) -> usize {
    match tensor.data.memory() {
        Memory::Host => tensor.data.len(),
        Memory::Device(_) => 0,
    }
}

/// Copies the bytes to a block of their own, so that a state keeps no more memory than is counted for it: a slice of a batch's
/// output keeps the whole output.
fn of_its_own(data: Buffer) -> Buffer {
    let Ok(bytes) = data.host() else { return data };
    let mut block = AlignedBlock::with_capacity(bytes.len());
    block.extend_from_slice(bytes);
    block.freeze()
}

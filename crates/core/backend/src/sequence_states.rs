//! Tensors that a model keeps from one request of a sequence to the next.

use std::{fmt, sync::Arc};

use galatea_types::{
    AlignedBlock, Buffer, Code, Error, InferRequest, Memory, Parameters, Result, Tensor,
};

/// Counts the memory that states of sequences keep, of all models together, and refuses what is too much.
pub trait StateMemory: fmt::Debug + Send + Sync {
    /// Takes this many bytes more.
    ///
    /// # Errors
    /// `Exhausted` when there are not as many, and none can be freed.
    fn take(&self, bytes: usize) -> Result<()>;

    /// Returns this many of the bytes that were taken.
    fn give_back(&self, bytes: usize);
}

/// The states of one sequence: handed in by the scheduler with a request, replaced by what the model gives, taken out by the
/// scheduler with the outcome. Which there are is the scheduler's choice.
///
/// What replaces them is counted by their [`StateMemory`] until they are dropped, where they have one. A clone has the same
/// values and has taken nothing for them.
#[derive(Clone, Debug, Default)]
pub struct SequenceStates {
    states: Vec<SequenceState>,
    taken: TakenMemory,
}

/// A tensor that an execution gives and the next one of the sequence gets.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceState {
    /// The output of the model that gives it.
    pub output: Arc<str>,
    /// Clients get the output as well.
    pub is_returned: bool,
    /// Under the name of the input of the model that takes it.
    pub value: Tensor,
}

/// Bytes that were taken of a memory for states, and go back to it in the end.
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
    /// These states, each of another output.
    pub fn new(states: Vec<SequenceState>) -> Self {
        Self { states, taken: TakenMemory::default() }
    }

    /// The same states; what replaces them is counted by `memory`.
    pub fn counted_by(mut self, memory: Arc<dyn StateMemory>) -> Self {
        self.taken = TakenMemory { memory: Some(memory), bytes: 0 };
        self
    }

    /// The same states, for an execution after which they are forgotten: nothing is counted.
    pub fn uncounted(&self) -> Self {
        Self::new(self.states.clone())
    }

    /// Bytes that are counted for them.
    pub fn counted_bytes(&self) -> usize {
        self.taken.bytes
    }

    /// Whether the model keeps nothing.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// What the model gets, as inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.states.iter().map(|state| &state.value)
    }

    /// Replaces the state that is given by the output of this name, in `request` of its sequence.
    ///
    /// # Errors
    /// `InvalidArg` when there is none, or the tensor has another type; `Exhausted` when there is no memory for it. No state
    /// has changed then.
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

    /// Keeps the states among the outputs of an execution. The rest is for the client of `request`. `is_of_batch`: other
    /// requests were executed as well, so that an output may be a part of a larger block.
    ///
    /// # Errors
    /// As those of [`SequenceStates::set`].
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

    /// Replaces states by their place, all or none.
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

/// Names the sequence that has no memory for its states; other errors name what is wrong themselves.
fn of_sequence(error: Error, request: &InferRequest) -> Error {
    match error.code() {
        Code::Exhausted => error.prefixed(format_args!(
            "inference request for sequence {} to model '{}': ",
            request.correlation_id, request.model_name
        )),
        _ => error,
    }
}

/// What a tensor takes of the memory of the machine, which devices' memory is none of.
fn bytes_of(tensor: &Tensor) -> usize {
    match tensor.data.memory() {
        Memory::Host => tensor.data.len(),
        Memory::Device(_) => 0,
    }
}

/// The same bytes in a block of their own, so that a state keeps no more memory than is counted for it: a slice of a batch's
/// output keeps the whole.
fn of_its_own(data: Buffer) -> Buffer {
    let Ok(bytes) = data.host() else { return data };
    let mut block = AlignedBlock::with_capacity(bytes.len());
    block.extend_from_slice(bytes);
    block.freeze()
}

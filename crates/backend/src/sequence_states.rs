//! Tensors that a model keeps from one request of a sequence to the next.

use std::sync::Arc;

use galatea_types::{Error, InferRequest, Result, Tensor};

/// The states of one sequence: handed in by the scheduler with a request, replaced by what the model gives, taken out by the
/// scheduler with the outcome. Which there are is the scheduler's choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceStates(Vec<SequenceState>);

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

impl SequenceStates {
    /// These states, each of another output.
    pub fn new(states: Vec<SequenceState>) -> Self {
        Self(states)
    }

    /// Whether the model keeps nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the model gets, as inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.0.iter().map(|state| &state.value)
    }

    /// Replaces the state that is given by the output of this name.
    ///
    /// # Errors
    /// `InvalidArg` when there is none, or the tensor has another type.
    pub fn set(&mut self, tensor: Tensor) -> Result<()> {
        let state = self.0.iter_mut().find(|state| state.output == tensor.name);
        let state = state.ok_or_else(|| {
            Error::invalid_arg(format!("state '{}' is not a valid state name.", tensor.name))
        })?;
        let (given, expected) = (tensor.data_type, state.value.data_type);
        if given != expected {
            return Err(Error::invalid_arg(format!(
                "state '{}' is {given}, but 'sequence_batching.state' has {expected} for it",
                tensor.name
            )));
        }
        let name = state.value.name.clone();
        state.value = Tensor { name, ..tensor };
        Ok(())
    }

    /// Takes the states out of the outputs of an execution. What is left is for the client of `request`.
    ///
    /// # Errors
    /// As those of [`SequenceStates::set`]; no state has changed then.
    pub(crate) fn take_from(
        &mut self,
        outputs: Vec<Tensor>,
        request: &InferRequest,
    ) -> Result<Vec<Tensor>> {
        let mut states = self.clone();
        let mut rest = Vec::with_capacity(outputs.len());
        for tensor in outputs {
            let Some(state) = self.0.iter().find(|state| state.output == tensor.name) else {
                rest.push(tensor);
                continue;
            };
            if state.is_returned && request.wants_output(&tensor.name) {
                rest.push(tensor.clone());
            }
            states.set(tensor)?;
        }
        *self = states;
        Ok(rest)
    }
}

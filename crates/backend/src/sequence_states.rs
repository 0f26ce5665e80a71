//! Tensors that a model keeps from one request of a sequence to the next.

use galatea_types::{Error, Result, Tensor};

/// The state of one sequence: handed in by the scheduler with a request, read and replaced by the model, taken
/// out by the scheduler with the outcome. Which names there are is the scheduler's choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceStates(Vec<Tensor>);

impl SequenceStates {
    /// These tensors, each under its name.
    pub fn new(tensors: Vec<Tensor>) -> Self {
        Self(tensors)
    }

    /// The state of this name as the last request of the sequence left it; `None` where there is none.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.iter().find(|state| &*state.name == name)
    }

    /// Replaces the state that has the name of `tensor`.
    ///
    /// # Errors
    /// `InvalidArg` when there is none of this name.
    pub fn set(&mut self, tensor: Tensor) -> Result<()> {
        match self.0.iter_mut().find(|state| state.name == tensor.name) {
            Some(state) => {
                *state = tensor;
                Ok(())
            }
            None => Err(Error::invalid_arg(format!(
                "no state '{}' is kept for the sequence of this request",
                tensor.name
            ))),
        }
    }

    /// The tensors, to be handed in with the sequence's next request.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.0
    }
}

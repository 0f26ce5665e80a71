//! A request that fits its model.

use std::ops::Deref;

use crate::{CorrelationId, InferRequest, Tensor};

/// A request that was checked against its model's configuration, with what follows from the check.
///
/// Only the engine's check makes one; code that receives one need not check names, types, shapes and sizes
/// again.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    request: InferRequest,
    batch_size: u32,
}

impl PreparedRequest {
    /// For the engine's check, and for tests that stand in for it: nobody else may call this.
    ///
    /// `batch_size`: the first dimension of every input when the model batches, else 1.
    #[doc(hidden)]
    pub fn assume_checked(request: InferRequest, batch_size: u32) -> Self {
        Self { request, batch_size }
    }

    /// Items in this request: the first dimension of every input when the model batches, else 1.
    pub fn batch_size(&self) -> u32 {
        self.batch_size
    }

    /// What the client asked for.
    pub fn request(&self) -> &InferRequest {
        &self.request
    }

    /// What the client asked for, no longer known to fit.
    pub fn into_request(self) -> InferRequest {
        self.request
    }

    /// Adds inputs that are not the client's: what a scheduler tells the model of a sequence.
    pub fn add_inputs(&mut self, inputs: impl IntoIterator<Item = Tensor>) {
        self.request.inputs.extend(inputs);
    }

    /// Removes the inputs behind the first `count`: those that were added.
    pub fn truncate_inputs(&mut self, count: usize) {
        self.request.inputs.truncate(count);
    }

    /// Makes it another step of its sequence, which begins or ends with it or does not.
    pub fn set_sequence_flags(&mut self, is_start: bool, is_end: bool) {
        self.request.sequence_start = is_start;
        self.request.sequence_end = is_end;
    }

    /// Makes it part of this sequence.
    pub fn set_correlation_id(&mut self, id: CorrelationId) {
        self.request.correlation_id = id;
    }

    /// Puts a tensor in the place of the input of its name, if there is one: for those that add inputs, and know its type.
    pub fn replace_input(&mut self, tensor: &Tensor) {
        let of_name = self.request.inputs.iter_mut().find(|input| input.name == tensor.name);
        if let Some(input) = of_name {
            *input = tensor.clone();
        }
    }

    /// What stands beside this request in a batch and for no request: one of the same model and batch size, with these
    /// inputs, for which whoever makes it answers, and nothing else of it.
    pub fn stand_in(&self, inputs: Vec<Tensor>) -> Self {
        let request = InferRequest { inputs, ..InferRequest::new(self.request.model_name.clone()) };
        Self { request, batch_size: self.batch_size }
    }

    /// Takes the inputs out: for code that keeps the rest of a request after its inputs were moved elsewhere.
    pub fn take_inputs(&mut self) -> Vec<Tensor> {
        std::mem::take(&mut self.request.inputs)
    }
}

impl Deref for PreparedRequest {
    type Target = InferRequest;

    fn deref(&self) -> &InferRequest {
        &self.request
    }
}

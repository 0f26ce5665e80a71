//! A request that fits its model.

use std::ops::Deref;

use crate::{CorrelationId, InferRequest, Tensor};

/// A request that was checked against its model's configuration, with the results of the check.
///
/// Only the engine's check makes one. Code that receives one need not check names, types, shapes and sizes again.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    request: InferRequest,
    batch_size: u32,
}

impl PreparedRequest {
    /// Makes it without a check. Only the engine's check may call this, and tests in its place.
    ///
    /// `batch_size` is the first dimension of every input when the model batches, else 1.
    #[doc(hidden)]
    pub fn assume_checked(request: InferRequest, batch_size: u32) -> Self {
        Self { request, batch_size }
    }

    /// Returns the items in this request: the first dimension of every input when the model batches, else 1.
    pub fn batch_size(&self) -> u32 {
        self.batch_size
    }

    /// Returns the client's request.
    pub fn request(&self) -> &InferRequest {
        &self.request
    }

    /// Returns the client's request, which no longer counts as checked.
    pub fn into_request(self) -> InferRequest {
        self.request
    }

    /// Adds inputs that are not the client's: a scheduler uses them to describe a sequence to the model.
    pub fn add_inputs(&mut self, inputs: impl IntoIterator<Item = Tensor>) {
        self.request.inputs.extend(inputs);
    }

    /// Removes the added inputs, which are those behind the first `count`.
    pub fn truncate_inputs(&mut self, count: usize) {
        self.request.inputs.truncate(count);
    }

    /// Makes it another step of its sequence, with these start and end flags.
    pub fn set_sequence_flags(&mut self, is_start: bool, is_end: bool) {
        self.request.sequence_start = is_start;
        self.request.sequence_end = is_end;
    }

    /// Makes it part of this sequence.
    pub fn set_correlation_id(&mut self, id: CorrelationId) {
        self.request.correlation_id = id;
    }

    /// Replaces the input with the name of `tensor`, if there is one. The caller has added that input and knows its type.
    pub fn replace_input(&mut self, tensor: &Tensor) {
        let of_name = self.request.inputs.iter_mut().find(|input| input.name == tensor.name);
        if let Some(input) = of_name {
            *input = tensor.clone();
        }
    }

    /// Makes a copy without inputs.
    pub fn without_inputs(&self) -> Self {
        Self { request: self.request.without_inputs(), batch_size: self.batch_size }
    }

    /// Makes a request that fills a place in a batch and has no client. It has the same model and batch size, and these inputs,
    /// which the caller guarantees; all else is empty.
    pub fn stand_in(&self, inputs: Vec<Tensor>) -> Self {
        let request = InferRequest { inputs, ..InferRequest::new(self.request.model_name.clone()) };
        Self { request, batch_size: self.batch_size }
    }

    /// Takes the inputs out, for code that keeps the rest of a request after its inputs were moved elsewhere.
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

//! A request that fits its model.

use std::ops::Deref;

use crate::{InferRequest, Tensor};

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

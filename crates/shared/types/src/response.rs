//! A response to a request.

use std::sync::Arc;

use crate::{OutputAllocator, Parameters, Result, Tensor};

/// A response to a request.
#[derive(Clone, Debug)]
pub struct InferResponse {
    /// The model that answered.
    pub model_name: Arc<str>,
    /// The version that answered.
    pub model_version: i64,
    /// The id of the request.
    pub id: String,
    /// Values that the model returns beside its outputs.
    pub parameters: Parameters,
    /// The outputs that the client asked for.
    pub outputs: Vec<Tensor>,
}

impl InferResponse {
    /// Returns the output of this name.
    pub fn output(&self, name: &str) -> Option<&Tensor> {
        self.outputs.iter().find(|t| &*t.name == name)
    }

    /// Moves all outputs to the memory that `allocator` has for them.
    ///
    /// # Errors
    /// The errors of [`OutputAllocator::place`].
    pub fn place_outputs(&mut self, allocator: &dyn OutputAllocator) -> Result<()> {
        for output in &mut self.outputs {
            output.data = allocator.place(&output.name, &output.data)?;
        }
        Ok(())
    }

    /// Returns the bytes of all outputs.
    pub fn byte_size(&self) -> usize {
        self.outputs.iter().map(|output| output.data.len()).sum()
    }
}

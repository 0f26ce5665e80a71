//! One response to a request.

use std::sync::Arc;

use crate::{OutputAllocator, Parameters, Result, Tensor};

/// One answer to a request.
#[derive(Clone, Debug)]
pub struct InferResponse {
    /// The model that answered.
    pub model_name: Arc<str>,
    /// The version that answered.
    pub model_version: i64,
    /// The request's.
    pub id: String,
    /// Values that the model returns beside its outputs.
    pub parameters: Parameters,
    /// Those asked for.
    pub outputs: Vec<Tensor>,
}

impl InferResponse {
    /// The output of this name.
    pub fn output(&self, name: &str) -> Option<&Tensor> {
        self.outputs.iter().find(|t| &*t.name == name)
    }

    /// Puts all outputs into the memory that `allocator` has for them.
    ///
    /// # Errors
    /// Those of [`OutputAllocator::place`].
    pub fn place_outputs(&mut self, allocator: &dyn OutputAllocator) -> Result<()> {
        for output in &mut self.outputs {
            output.data = allocator.place(&output.name, &output.data)?;
        }
        Ok(())
    }

    /// Bytes of all outputs.
    pub fn byte_size(&self) -> usize {
        self.outputs.iter().map(|output| output.data.len()).sum()
    }
}

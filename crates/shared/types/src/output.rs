//! Memory that the sender of a request provides for its outputs.

use std::fmt;

use crate::{Buffer, Memory, Result};

/// Gives memory for the outputs of one request, and takes their data.
///
/// It is asked twice per output of a response: by a model that can write into memory of others, before it computes
/// ([`OutputAllocator::allocate`]), and for every output when the response is complete ([`OutputAllocator::place`]).
pub trait OutputAllocator: fmt::Debug + Send + Sync {
    /// Returns memory of `byte_size` bytes that a model writes `output` into; `None` when the model uses memory of its
    /// own. The model would like it in `preferred`.
    ///
    /// # Errors
    /// There is no memory for this output. The request fails with this error.
    fn allocate(
        &self,
        output: &str,
        byte_size: usize,
        preferred: Memory,
    ) -> Result<Option<Box<dyn OutputMemory>>> {
        let _ = (output, byte_size, preferred);
        Ok(None)
    }

    /// Puts the complete `data` of `output` where the sender wants it, unless it lies there. Returns the data that the
    /// response then has.
    ///
    /// # Errors
    /// The data does not fit there, or cannot be copied.
    fn place(&self, output: &str, data: &Buffer) -> Result<Buffer>;
}

/// Memory for one output that nobody else uses until the output is complete.
pub trait OutputMemory: Send {
    /// Lends the bytes, to be written.
    fn as_mut_slice(&mut self) -> &mut [u8];

    /// Returns the written bytes as the data of the output.
    fn into_buffer(self: Box<Self>) -> Buffer;
}

//! Memory that the sender of a request provides for its outputs.

use std::fmt;

use crate::{Buffer, Memory, Result};

/// Provides memory for the outputs of a request, and takes their data.
///
/// It is asked twice per output of a response. A model that can write into memory of others asks before it computes
/// ([`OutputAllocator::allocate`]). When the response is complete, each output is placed ([`OutputAllocator::place`]).
pub trait OutputAllocator: fmt::Debug + Send + Sync {
    /// Returns memory of `byte_size` bytes for `output`, preferably in `preferred`. `None` makes the model use memory of its own.
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

    /// Moves the complete `data` of `output` to the sender's memory, unless it is there already. Returns the data for the
    /// response.
    ///
    /// # Errors
    /// The data does not fit there, or cannot be copied.
    fn place(&self, output: &str, data: &Buffer) -> Result<Buffer>;
}

/// Memory for one output that nobody else uses until the output is complete.
pub trait OutputMemory: Send {
    /// Returns the bytes, for writing.
    fn as_mut_slice(&mut self) -> &mut [u8];

    /// Returns the written bytes as the data of the output.
    fn into_buffer(self: Box<Self>) -> Buffer;
}

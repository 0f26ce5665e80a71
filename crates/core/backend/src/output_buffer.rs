//! Memory that a model writes an output into.

use galatea_types::{AlignedBlock, Buffer, Error, InferRequest, Memory, OutputMemory, Result};

/// Memory for one output, in the place that the sender of the request wants.
pub struct OutputBuffer(Owner);

enum Owner {
    Server(AlignedBlock),
    Sender(Box<dyn OutputMemory>),
}

impl OutputBuffer {
    /// Makes a buffer of `byte_size` bytes for the output `name` of a request. It is memory of the request's
    /// sender, requested as `preferred`, if the sender has any; else an aligned block of zeros.
    ///
    /// # Errors
    /// `InvalidArg` if the request does not ask for the output, and those of the sender's allocator.
    pub fn of(
        request: &InferRequest,
        name: &str,
        byte_size: usize,
        preferred: Memory,
    ) -> Result<Self> {
        if !request.wants_output(name) {
            let prefix = request.message_prefix();
            let text = format!("{prefix}output '{name}' was not requested");
            return Err(Error::invalid_arg(text));
        }
        let given = match &request.output_allocator {
            Some(allocator) => allocator.allocate(name, byte_size, preferred)?,
            None => None,
        };
        let Some(mut memory) = given else {
            let mut block = AlignedBlock::with_capacity(byte_size);
            block.extend_zeroed(byte_size);
            return Ok(Self(Owner::Server(block)));
        };
        let length = memory.as_mut_slice().len();
        if length != byte_size {
            let text = format!("{length} bytes were given for an output of {byte_size} bytes");
            return Err(Error::internal(text));
        }
        Ok(Self(Owner::Sender(memory)))
    }

    /// Returns the bytes for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Owner::Server(block) => block.as_mut_slice(),
            Owner::Sender(memory) => memory.as_mut_slice(),
        }
    }

    /// Returns the data of the output for its tensor.
    pub fn into_buffer(self) -> Buffer {
        match self.0 {
            Owner::Server(block) => block.freeze(),
            Owner::Sender(memory) => memory.into_buffer(),
        }
    }
}

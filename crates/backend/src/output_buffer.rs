//! Memory that a model writes an output into.

use galatea_types::{AlignedBlock, Buffer, Memory};

/// Memory for one output, where the answer is wanted: made by [`Batch::output_buffer`](crate::Batch::output_buffer).
pub struct OutputBuffer(AlignedBlock);

impl OutputBuffer {
    /// Aligned, filled with zeros.
    pub(crate) fn new(byte_size: usize, preferred: Memory) -> Self {
        match preferred {
            // Nothing here allocates on a device: who prefers one copies from there.
            Memory::Host | Memory::Device(_) => Self::in_host_memory(byte_size),
        }
    }

    fn in_host_memory(byte_size: usize) -> Self {
        let mut block = AlignedBlock::with_capacity(byte_size);
        block.extend_zeroed(byte_size);
        Self(block)
    }

    /// Where it lies: not always where the model would like it.
    pub fn memory(&self) -> Memory {
        Memory::Host
    }

    /// The bytes to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }

    /// The data of the output, to be put into its tensor.
    pub fn into_buffer(self) -> Buffer {
        self.0.freeze()
    }
}

//! Memory that a model writes an output into.

use galatea_types::{AlignedBlock, Buffer, Memory, RegionSpan};

/// Memory for one output, where the answer is wanted: made by [`Batch::output_buffer`](crate::Batch::output_buffer).
///
/// The bytes of a shared region are not lent to the model, see [`Region`](galatea_types::Region): it writes into a
/// block of its own, which [`OutputBuffer::into_buffer`] copies to the region, once.
pub struct OutputBuffer {
    block: AlignedBlock,
    destination: Option<RegionSpan>,
}

impl OutputBuffer {
    /// Aligned, filled with zeros. The client's `destination` goes before what the model prefers.
    pub(crate) fn new(
        byte_size: usize,
        destination: Option<RegionSpan>,
        preferred: Memory,
    ) -> Self {
        let block = match preferred {
            // Nothing here allocates on a device: who prefers one copies from there.
            Memory::Host | Memory::Device(_) => in_host_memory(byte_size),
        };
        Self { block, destination }
    }

    /// Where the data of the output will lie: not always where the model would like it.
    pub fn memory(&self) -> Memory {
        self.destination.as_ref().map_or(Memory::Host, |span| span.region.memory())
    }

    /// The bytes to be written, in host memory.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.block.as_mut_slice()
    }

    /// The data of the output, to be put into its tensor: in its region, where the client named one. A model reads no
    /// inputs any more when it calls this, for they may lie in the same place.
    pub fn into_buffer(self) -> Buffer {
        let data = self.block.freeze();
        match self.destination {
            None => data,
            // What the region refuses stays here: it is refused again where the answer is encoded, as for every
            // model, and the client reads why.
            Some(span) => span.place(&data).unwrap_or(data),
        }
    }
}

fn in_host_memory(byte_size: usize) -> AlignedBlock {
    let mut block = AlignedBlock::with_capacity(byte_size);
    block.extend_zeroed(byte_size);
    block
}

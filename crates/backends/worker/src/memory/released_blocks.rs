//! Blocks of the outbox while the server reads them, and the queue of blocks that go back to the worker.

use std::sync::{Arc, Mutex};

use galatea_types::LockExt as _;

use crate::{memory::mapping::Mapping, waker::EventThreadWaker};

/// A block that the other side wrote and does not touch until it is given back, when this is dropped. Only workers use it,
/// since they trust the server. The server copies the blocks of a worker.
pub(crate) struct OutboxBlock {
    mapping: Arc<Mapping>,
    offset: usize,
    length: usize,
    releases: Arc<ReleasedBlocks>,
}

impl OutboxBlock {
    /// Builds a block over the range, or returns `None` if it is not within the mapping.
    pub fn new(
        mapping: Arc<Mapping>,
        offset: u64,
        length: usize,
        releases: Arc<ReleasedBlocks>,
    ) -> Option<Self> {
        let offset = usize::try_from(offset).ok()?;
        if offset.checked_add(length)? > mapping.length() {
            return None;
        }
        releases.pending.lock_unpoisoned().in_use += 1;
        Some(Self { mapping, offset, length, releases })
    }
}

impl AsRef<[u8]> for OutboxBlock {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the server has given the block to this worker, and does not write there until it has it back. It alone
        // could: only the worker's own code runs in this process.
        unsafe { self.mapping.get(self.offset, self.length) }.unwrap_or_default()
    }
}

impl Drop for OutboxBlock {
    fn drop(&mut self) {
        self.releases.pending.lock_unpoisoned().in_use -= 1;
        self.releases.add(self.offset as u64, self.length);
    }
}

/// Blocks that the worker may use again. They are sent with the next message, or alone when there are many, or
/// when the event thread finds the memory idle.
pub(crate) struct ReleasedBlocks {
    pending: Mutex<Pending>,
    /// Wakes the event thread when blocks should not wait for the next message.
    waker: Arc<EventThreadWaker>,
}

#[derive(Default)]
struct Pending {
    offsets: Vec<u64>,
    bytes: usize,
    /// Blocks that the server still reads.
    in_use: usize,
}

/// Limit of pending bytes or blocks, from which they are sent without waiting for the next message.
const MAX_PENDING_BYTES: usize = 4 << 20;
const MAX_PENDING_BLOCKS: usize = 64;
/// Most offsets in one message: well below what a packet holds.
const MAX_PER_MESSAGE: usize = 4096;

impl ReleasedBlocks {
    pub fn new(waker: Arc<EventThreadWaker>) -> Self {
        Self { pending: Mutex::default(), waker }
    }

    pub fn add(&self, offset: u64, length: usize) {
        let is_urgent = {
            let mut pending = self.pending.lock_unpoisoned();
            pending.offsets.push(offset);
            pending.bytes += length;
            pending.offsets.len() == MAX_PENDING_BLOCKS || pending.bytes >= MAX_PENDING_BYTES
        };
        if is_urgent {
            self.waker.wake();
        }
    }

    /// Returns true if enough blocks are pending to be worth a message of their own.
    pub fn are_many(&self) -> bool {
        let pending = self.pending.lock_unpoisoned();
        pending.offsets.len() >= MAX_PENDING_BLOCKS || pending.bytes >= MAX_PENDING_BYTES
    }

    /// Returns true if no block is read or pending.
    pub fn is_idle(&self) -> bool {
        let pending = self.pending.lock_unpoisoned();
        pending.in_use == 0 && pending.offsets.is_empty()
    }

    /// Returns true if no block is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.lock_unpoisoned().offsets.is_empty()
    }

    /// Takes the blocks that go with the next message.
    pub fn take(&self) -> Vec<u64> {
        let mut pending = self.pending.lock_unpoisoned();
        let rest = pending.offsets.len().saturating_sub(MAX_PER_MESSAGE);
        if rest == 0 {
            pending.bytes = 0;
        }
        pending.offsets.split_off(rest)
    }
}

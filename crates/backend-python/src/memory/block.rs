use std::sync::{Arc, Mutex, PoisonError};

use crate::memory::mapping::Mapping;

/// A block of the outbox, for reading. Its worker gets it back when this is dropped.
pub(crate) struct OutboxBlock {
    mapping: Arc<Mapping>,
    offset: usize,
    length: usize,
    releases: Arc<Releases>,
}

impl OutboxBlock {
    /// `None`: not within the mapping.
    pub fn new(
        mapping: Arc<Mapping>,
        offset: u64,
        length: usize,
        releases: Arc<Releases>,
    ) -> Option<Self> {
        let offset = usize::try_from(offset).ok()?;
        mapping.get(offset, length)?;
        releases.lock().in_use += 1;
        Some(Self { mapping, offset, length, releases })
    }
}

impl AsRef<[u8]> for OutboxBlock {
    fn as_ref(&self) -> &[u8] {
        self.mapping.get(self.offset, self.length).unwrap_or_default()
    }
}

impl Drop for OutboxBlock {
    fn drop(&mut self) {
        self.releases.lock().in_use -= 1;
        self.releases.add(self.offset as u64, self.length);
    }
}

/// Blocks that the worker may use again, on their way to it: with the next message, or when there are many,
/// or when the side thread looks after idle memory.
pub(crate) struct Releases {
    waiting: Mutex<Waiting>,
    /// Called, without any lock held, when they should not wait for a message to ride on.
    hurry: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Waiting {
    offsets: Vec<u64>,
    bytes: usize,
    /// Blocks that are still in use here.
    in_use: usize,
}

/// So much memory is not left waiting for the next message.
const MOST_BYTES: usize = 4 << 20;
const MOST_BLOCKS: usize = 64;
/// Most offsets in one message: well below what a packet holds.
const MOST_AT_ONCE: usize = 4096;

impl Releases {
    pub fn new(hurry: impl Fn() + Send + Sync + 'static) -> Self {
        Self { waiting: Mutex::default(), hurry: Box::new(hurry) }
    }

    pub fn add(&self, offset: u64, length: usize) {
        let is_urgent = {
            let mut waiting = self.lock();
            waiting.offsets.push(offset);
            waiting.bytes += length;
            waiting.offsets.len() == MOST_BLOCKS || waiting.bytes >= MOST_BYTES
        };
        if is_urgent {
            (self.hurry)();
        }
    }

    pub fn are_many(&self) -> bool {
        let waiting = self.lock();
        waiting.offsets.len() >= MOST_BLOCKS || waiting.bytes >= MOST_BYTES
    }

    /// No block is in use or on its way back.
    pub fn are_all_back(&self) -> bool {
        let waiting = self.lock();
        waiting.in_use == 0 && waiting.offsets.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().offsets.is_empty()
    }

    /// Those that are to go with the next message.
    pub fn take(&self) -> Vec<u64> {
        let mut waiting = self.lock();
        let rest = waiting.offsets.len().saturating_sub(MOST_AT_ONCE);
        if rest == 0 {
            waiting.bytes = 0;
        }
        waiting.offsets.split_off(rest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

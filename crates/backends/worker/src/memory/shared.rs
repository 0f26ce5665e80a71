//! Both arenas of one worker behind one interface.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use galatea_types::{MemoryBudget, MemoryReservation, OverBudget, Result};

use crate::{
    memory::{
        input_arena::InputArena,
        limits::{ArenaLimits, MemoryRules},
        mapping,
        output_arena::OutputArena,
        released_blocks::{OutboxBlock, ReleasedBlocks},
    },
    waker::EventThreadWaker,
    wire::{Blocks, ProtocolError},
};

/// The memory that the server and one worker share.
pub struct SharedMemory {
    inbox: InputArena,
    outbox: OutputArena,
    /// Blocks of the outbox that go back to the worker.
    pub(crate) releases: Arc<ReleasedBlocks>,
    waker: Arc<EventThreadWaker>,
    /// The budget for data of a worker. Set where the other side is a worker, which may write to its memory at any time: its
    /// data is copied, and counted here.
    budget: Option<Arc<MemoryBudget>>,
    /// Number of blocks given to the worker. The event thread compares it to see that memory is in use.
    uses: AtomicU64,
}

impl SharedMemory {
    pub(crate) fn new(rules: MemoryRules, waker: Arc<EventThreadWaker>) -> io::Result<Self> {
        let MemoryRules { arenas, budget } = rules;
        let outbox = mapping::create("galatea-outbox", arenas.initial)?;
        let (inbox, outbox) = (InputArena::new(arenas)?, OutputArena::over(outbox, arenas)?);
        Ok(Self::over(inbox, outbox, waker, Some(budget)))
    }

    /// Builds the worker's view of memory that the server made: the worker writes the server's outbox and reads its inbox.
    pub(crate) fn of_worker(
        inbox: OwnedFd,
        outbox: OwnedFd,
        limits: ArenaLimits,
        waker: Arc<EventThreadWaker>,
    ) -> io::Result<Self> {
        if !mapping::is_sealed(&inbox) || !mapping::is_sealed(&outbox) {
            return Err(io::Error::other("the shared memory is not sealed"));
        }
        let (outbox, inbox) =
            (InputArena::over(outbox, limits)?, OutputArena::over(inbox, limits)?);
        Ok(Self::over(outbox, inbox, waker, None))
    }

    fn over(
        inbox: InputArena,
        outbox: OutputArena,
        waker: Arc<EventThreadWaker>,
        budget: Option<Arc<MemoryBudget>>,
    ) -> Self {
        let releases = Arc::new(ReleasedBlocks::new(waker.clone()));
        Self { inbox, outbox, releases, waker, budget, uses: AtomicU64::new(0) }
    }

    /// Returns inbox and outbox, for the worker to inherit.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.inbox.memory.as_fd(), self.outbox.memory.as_fd()]
    }

    /// Copies `bytes` into a new block of the inbox and returns its offset. The worker gives it back, or
    /// [`SharedMemory::free`] does.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<u64> {
        let offset = self.inbox.put(bytes)?;
        self.uses.fetch_add(1, Ordering::Relaxed);
        self.waker.start_ticking();
        Ok(offset)
    }

    /// Returns an empty list of blocks for one message, which can be freed together.
    pub fn allocation(&self) -> BlockAllocation<'_> {
        BlockAllocation { memory: self, offsets: Vec::new() }
    }

    /// Frees a block of the inbox. Returns false if there is no such block.
    pub(crate) fn free(&self, offset: u64) -> bool {
        self.inbox.free(offset)
    }

    /// Reads a block of the outbox. The server copies it, since checked data must not change any more, and gives it back at
    /// once. A worker gives it back when the last clone of the buffer is dropped.
    pub(crate) fn block(&self, offset: u64, length: usize) -> Result<Bytes, ProtocolError> {
        self.waker.start_ticking();
        if let Some(budget) = &self.budget {
            let copy = self.outbox.copy(offset, length)?;
            self.releases.add(offset, length);
            return Ok(counted(copy, budget));
        }
        let mapping = self.outbox.mapping(offset, length)?;
        let block = OutboxBlock::new(mapping, offset, length, Arc::clone(&self.releases));
        let block = block.ok_or(ProtocolError("a block lies outside of the shared memory"))?;
        Ok(Bytes::from_owner(block))
    }

    /// Reserves room in the budget for `bytes` of the worker, which exist twice while they are copied. Hold the reservation
    /// until then, so that several workers are not promised the same room.
    pub(crate) fn admit(&self, bytes: usize) -> Result<MemoryReservation, OverBudget> {
        let mut held = MemoryReservation::default();
        if let Some(budget) = self.budget.as_ref().filter(|_| bytes >= COUNTED) {
            held = budget.reservation();
            held.try_grow(bytes.saturating_mul(2))?;
            // The copy is counted separately.
            held.shrink_to(bytes);
        }
        Ok(held)
    }

    /// Gives back a block of the outbox that is not read.
    pub(crate) fn refuse(&self, offset: u64, length: usize) {
        self.releases.add(offset, length);
    }

    /// Returns a number that changes whenever a block is given to the worker.
    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Gives the inbox back to the kernel when neither arena is in use. Returns false if one still is.
    pub(crate) fn trim(&self) -> bool {
        self.releases.is_idle() && self.inbox.trim()
    }
}

/// Bytes below which a copy is not counted: there are no more such blocks than requests, which are counted.
const COUNTED: usize = 64 << 10;

fn counted(bytes: Vec<u8>, budget: &Arc<MemoryBudget>) -> Bytes {
    if bytes.len() < COUNTED {
        return bytes.into();
    }
    let mut memory = budget.reservation();
    memory.grow(bytes.len());
    memory.attach(bytes.into())
}

/// Blocks taken for one message, so that all can be freed when it cannot be sent.
pub struct BlockAllocation<'a> {
    memory: &'a SharedMemory,
    pub(crate) offsets: Vec<u64>,
}

impl BlockAllocation<'_> {
    /// Frees all blocks from index `from` on.
    pub fn free_from(&mut self, from: usize) {
        self.offsets.drain(from.min(self.offsets.len())..).for_each(|offset| {
            self.memory.free(offset);
        });
    }
}

impl Blocks for BlockAllocation<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<u64> {
        let offset = self.memory.put(bytes)?;
        self.offsets.push(offset);
        Ok(offset)
    }
}

//! Counts the bytes that a connection has received and no call has read.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use galatea_types::{LockExt, MemoryBudget, MemoryReservation};

/// Below this size nothing counts to the budget; above it, bytes count in steps of this size.
pub(crate) const STEP: usize = 64 << 10;

/// Received bytes of calls that no call has read. They wait in memory, and count to the budget.
///
/// Bytes of calls that ended early count too until no call is open. By then they are gone.
#[derive(Debug, Default)]
pub(crate) struct UnreadBytes {
    received: AtomicUsize,
    read: AtomicUsize,
    readers: AtomicUsize,
    /// The most bytes that can be unread.
    most: usize,
    /// Bytes in `memory`.
    counted: AtomicUsize,
    memory: Mutex<MemoryReservation>,
}

impl UnreadBytes {
    /// Returns the count for a connection that may have `most` unread bytes.
    pub fn new(most: usize, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { most, memory: Mutex::new(budget.reservation()), ..Self::default() })
    }

    pub fn bytes(&self) -> usize {
        self.received.load(Relaxed).saturating_sub(self.read.load(Relaxed)).min(self.most)
    }

    fn counted(&self) -> usize {
        self.counted.load(Relaxed)
    }

    pub fn received_in_all(&self) -> usize {
        self.received.load(Relaxed)
    }

    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes, Relaxed);
        self.count();
    }

    fn count(&self) {
        let bytes = Some(self.bytes()).filter(|&bytes| bytes >= STEP).unwrap_or(0);
        let before = self.counted();
        if bytes == before || (bytes > 0 && bytes.abs_diff(before) < STEP) {
            return;
        }
        let mut memory = self.memory.lock_unpoisoned();
        memory.shrink_to(bytes);
        let more = bytes - memory.bytes().min(bytes);
        memory.grow(more);
        self.counted.store(bytes, Relaxed);
    }

    pub fn reader(self: &Arc<Self>) -> Reader {
        self.readers.fetch_add(1, Relaxed);
        Reader(self.clone())
    }
}

/// A call that reads the bytes received for it.
#[derive(Debug)]
pub(crate) struct Reader(Arc<UnreadBytes>);

impl Reader {
    pub fn record_read(&self, bytes: usize) {
        self.0.read.fetch_add(bytes, Relaxed);
        self.0.count();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.0.readers.fetch_sub(1, Relaxed) == 1 {
            self.0.read.store(self.0.received.load(Relaxed), Relaxed);
            self.0.count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_bytes_are_counted_until_the_last_call_ends() {
        let budget = MemoryBudget::new(1);
        let unread = UnreadBytes::new(100 * STEP, &budget);
        let (first, second) = (unread.reader(), unread.reader());
        unread.received(STEP - 1);
        assert_eq!((unread.bytes(), budget.used()), (STEP - 1, 0));
        unread.received(9 * STEP + 1);
        assert_eq!(budget.used(), 10 * STEP);
        first.record_read(3 * STEP);
        assert_eq!(budget.used(), 7 * STEP);
        drop(first);
        assert_eq!(budget.used(), 7 * STEP);
        unread.received(1000 * STEP);
        assert_eq!(budget.used(), 100 * STEP, "more there cannot be");
        second.record_read(10);
        drop(second);
        assert_eq!((unread.bytes(), budget.used()), (0, 0));
    }
}

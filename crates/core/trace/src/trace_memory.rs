//! The memory for traces.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The most bytes of traces that are not written.
pub(crate) const MOST: usize = 64 << 20;

/// Counts the bytes of all traces that are not written.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceMemory(Arc<AtomicUsize>);

impl TraceMemory {
    pub fn hold(&self) -> MemoryShare {
        MemoryShare { memory: self.clone(), bytes: 0 }
    }

    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// A share of the memory for traces, until it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    memory: TraceMemory,
    bytes: usize,
}

impl MemoryShare {
    /// Takes more. Returns `false`, and takes nothing, when there is no room.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let used = self.memory.0.fetch_add(bytes, Relaxed);
        if used.saturating_add(bytes) > MOST {
            self.memory.0.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Returns its number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all bytes but these.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.memory.0.fetch_sub(surplus, Relaxed);
        self.bytes -= surplus;
    }

    /// Takes over another share.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_with_their_traces() {
        let memory = TraceMemory::default();
        let (mut one, mut other) = (memory.hold(), memory.hold());
        assert!(one.try_grow(MOST) && !other.try_grow(1));
        one.shrink_to(MOST - 1);
        assert!(other.try_grow(1));
        other.join(one);
        assert_eq!(memory.used(), MOST);
        drop(other);
        assert_eq!(memory.used(), 0);
    }
}

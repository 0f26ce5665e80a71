//! The allocator of an arena, with its list of free ranges.

use std::collections::{BTreeMap, HashMap};

/// The free and used ranges of an arena. Knows offsets only.
///
/// Blocks start on [`ALIGNMENT`]. The first gap that is large enough is taken: most requests of a
/// model have the same few sizes, and blocks at the front are likely to be in the processor's cache.
#[derive(Debug, Default)]
pub(crate) struct FreeList {
    /// Offset and length of each gap; no two touch.
    gaps: BTreeMap<usize, usize>,
    /// Offset and length of each block in use.
    blocks: HashMap<usize, usize>,
    size: usize,
}

pub(crate) const ALIGNMENT: usize = 64;

impl FreeList {
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn is_unused(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Takes a block. Returns `None` if no gap is large enough.
    pub fn take(&mut self, length: usize) -> Option<usize> {
        let length = length.max(1).checked_next_multiple_of(ALIGNMENT)?;
        let (&offset, &gap) = self.gaps.iter().find(|(_, gap)| **gap >= length)?;
        self.gaps.remove(&offset);
        if gap > length {
            self.gaps.insert(offset + length, gap - length);
        }
        self.blocks.insert(offset, length);
        Some(offset)
    }

    /// Frees a block. Returns false if there is no such block.
    pub fn free(&mut self, offset: usize) -> bool {
        let Some(length) = self.blocks.remove(&offset) else { return false };
        self.insert_gap(offset, length);
        true
    }

    /// Records that the arena grew to `size`.
    pub fn grow(&mut self, size: usize) {
        let added = size.saturating_sub(self.size);
        if added > 0 {
            let offset = std::mem::replace(&mut self.size, size);
            self.insert_gap(offset, added);
        }
    }

    /// Returns the size the arena must grow to so that `length` fits. Free space at its end counts.
    pub fn size_for(&self, length: usize) -> Option<usize> {
        let length = length.max(1).checked_next_multiple_of(ALIGNMENT)?;
        let last = self.gaps.iter().next_back().filter(|(offset, gap)| *offset + *gap == self.size);
        let free_at_end = last.map_or(0, |(_, gap)| *gap);
        self.size.checked_add(length.saturating_sub(free_at_end))
    }

    fn insert_gap(&mut self, mut offset: usize, mut length: usize) {
        if let Some((&before, &gap)) = self.gaps.range(..offset).next_back()
            && before + gap == offset
        {
            self.gaps.remove(&before);
            (offset, length) = (before, gap + length);
        }
        if let Some(gap) = self.gaps.remove(&(offset + length)) {
            length += gap;
        }
        self.gaps.insert(offset, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_gaps_are_merged() {
        let mut list = FreeList::default();
        list.grow(640);
        let blocks: Vec<usize> = (0..10).map(|_| list.take(10).expect("free")).collect();
        assert_eq!(blocks, (0..10).map(|i| i * 64).collect::<Vec<_>>());
        assert_eq!(list.take(1), None);
        for i in [3, 5, 4] {
            assert!(list.free(blocks[i]));
        }
        assert!(!list.free(blocks[4]), "freed twice");
        assert!(!list.free(65), "no block starts there");
        assert_eq!(list.take(3 * 64), Some(3 * 64));
    }

    #[test]
    fn growth_reuses_the_free_space_at_the_end() {
        let mut list = FreeList::default();
        assert_eq!(list.size_for(100), Some(128));
        list.grow(128);
        assert_eq!(list.size_for(256), Some(256));
        assert_eq!(list.take(64), Some(0));
        assert_eq!(list.size_for(256), Some(320));
        list.grow(320);
        assert_eq!(list.take(256), Some(64));
        assert_eq!(list.size_for(usize::MAX), None);
        assert!(!list.is_unused());
    }
}

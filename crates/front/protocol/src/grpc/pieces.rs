//! A message in the pieces in which the network delivered it.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use galatea_types::AlignedBlock;

/// Shorter pieces are joined: a piece of its own costs a good part of that, and keeps its receive buffer alive.
const JOINED_BELOW: usize = 1 << 10;
/// The length of a joined piece, after which it is not moved any more.
const JOINED_LENGTH: usize = 64 << 10;

/// A message in the pieces in which the network delivered it, read as one.
///
/// A field within one piece shares its memory. A field that spans pieces is gathered in an aligned block, so that a
/// backend need not copy it again.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    /// Short pieces, joined, that follow the others.
    tail: BytesMut,
    remaining: usize,
}

impl Pieces {
    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        self.remaining += piece.len();
        if piece.len() < JOINED_BELOW && self.remaining > piece.len() {
            self.tail.extend_from_slice(&piece);
            if self.tail.len() >= JOINED_LENGTH {
                self.finish_tail();
            }
            return;
        }
        self.finish_tail();
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    fn finish_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.pieces.push_back(tail.freeze());
        }
    }

    /// Takes the next `length` bytes, or all if there are fewer, without joining them.
    pub fn split_to(&mut self, length: usize) -> Self {
        if length >= self.remaining {
            return std::mem::take(self);
        }
        let mut taken = Self::default();
        self.finish_tail();
        while taken.remaining < length {
            let Some(piece) = self.pieces.front() else { break };
            let piece = self.copy_to_bytes(piece.len().min(length - taken.remaining));
            taken.push(piece);
        }
        taken
    }

    /// Returns `true` if the next `length` bytes span pieces and need a copy.
    pub(super) fn is_cut_within(&self, length: usize) -> bool {
        self.chunk().len() < length
    }

    fn gather(&mut self, length: usize) -> Bytes {
        let mut block = AlignedBlock::with_capacity(length);
        let mut left = length;
        while left > 0 && self.has_remaining() {
            let chunk = self.chunk();
            let part = chunk.get(..left).unwrap_or(chunk);
            block.extend_from_slice(part);
            let taken = part.len();
            left -= taken;
            self.advance(taken);
        }
        block.into_bytes()
    }
}

impl From<Bytes> for Pieces {
    fn from(whole: Bytes) -> Self {
        let mut pieces = Self::default();
        pieces.push(whole);
        pieces
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&self.tail[..], |piece| &piece[..])
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining = self.remaining.saturating_sub(count);
        while count > 0 {
            let Some(piece) = self.pieces.front_mut() else {
                return self.tail.advance(count.min(self.tail.len()));
            };
            if count < piece.len() {
                return piece.advance(count);
            }
            count -= piece.len();
            self.pieces.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        match self.pieces.front_mut() {
            Some(piece) if length < piece.len() => {
                self.remaining -= length;
                piece.split_to(length)
            }
            Some(piece) if length == piece.len() => {
                self.remaining -= length;
                self.pieces.pop_front().unwrap_or_default()
            }
            None if length <= self.tail.len() => {
                self.remaining -= length;
                self.tail.split_to(length).freeze()
            }
            _ => self.gather(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[usize]) -> (Pieces, Vec<u8>) {
        let whole: Vec<u8> = (0..sizes.iter().sum()).map(|n: usize| n as u8).collect();
        let mut pieces = Pieces::default();
        let mut at = 0;
        for size in sizes {
            pieces.push(Bytes::copy_from_slice(&whole[at..at + size]));
            at += size;
        }
        (pieces, whole)
    }

    #[test]
    fn bytes_are_read_back_at_any_split() {
        let sizes = [3, 0, 1, 5000, 7, 8, 9, 2000, 1024, 1023, 1];
        let total = sizes.iter().sum();
        for step in [1, 2, 5, 1000, 4096, total - 1, total, total + 1] {
            let (mut left, whole) = pieces(&sizes);
            let mut read = Vec::new();
            while left.has_remaining() {
                let mut part = left.split_to(step);
                assert_eq!(part.remaining(), step.min(total - read.len()));
                read.extend_from_slice(&part.copy_to_bytes(part.remaining()));
            }
            assert_eq!(read, whole, "{step}");
        }
    }

    #[test]
    fn short_pieces_need_little_more_memory_than_their_bytes() {
        let (many, whole) = pieces(&[1; 100_000]);
        assert!(many.pieces.len() + many.tail.capacity() < 2 * whole.len());
        let (mut many, _) = pieces(&[1; 100_000]);
        assert_eq!(many.copy_to_bytes(whole.len()), whole);
    }
}

//! Counting the chunks of a body.

use super::{LastRead, Wire};

/// Most chunks in a body that hold something, as in Triton.
const MAX_CHUNKS: u32 = 65_536;

/// More chunks than are taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks."
)]
pub(crate) struct TooManyChunks;

/// Counts the chunks of one body from the pieces that the parser gives.
///
/// A piece is a chunk, or the part of it that had come: it lies in the memory that was read into, and ends where that
/// ends. The next piece continues it if it lies at the very start of the next read: before a new chunk there is the end of
/// the old one and a length.
#[derive(Debug, Default)]
pub(crate) struct ChunkCount {
    chunks: u32,
    /// The read that ended with the last piece.
    unfinished: Option<u64>,
}

impl ChunkCount {
    /// The next piece of a body of unknown length.
    pub fn see(&mut self, piece: &[u8], wire: &Wire) -> Result<(), TooManyChunks> {
        self.see_in(piece, wire.last_read())
    }

    fn see_in(&mut self, piece: &[u8], read: LastRead) -> Result<(), TooManyChunks> {
        let piece = piece.as_ptr_range();
        let goes_on = piece.start.addr() == read.start
            && self.unfinished.is_some_and(|last| last.wrapping_add(1) == read.number);
        self.unfinished = (piece.end.addr() == read.end).then_some(read.number);
        if !goes_on && piece.start != piece.end {
            self.chunks += 1;
        }
        if self.chunks > MAX_CHUNKS { Err(TooManyChunks) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks counted in pieces, each given by its read and its place there.
    fn counted(reads: &[&[u8]], pieces: &[(usize, &[u8])]) -> u32 {
        let mut count = ChunkCount::default();
        for &(number, text) in pieces {
            let read = reads[number];
            let at = read.windows(text.len()).position(|found| found == text).expect("in the read");
            let range = read.as_ptr_range();
            let last = LastRead {
                number: number as u64,
                start: range.start.addr(),
                end: range.end.addr(),
            };
            count.see_in(&read[at..at + text.len()], last).expect("few");
        }
        count.chunks
    }

    #[test]
    fn a_chunk_counts_once_however_it_is_cut() {
        let whole: &[u8] = b"3\r\nabc\r\n2\r\nde\r\n";
        assert_eq!(counted(&[whole], &[(0, b"abc"), (0, b"de")]), 2);
        let cut = [&b"8\r\nabc"[..], b"def", b"gh\r\n1\r\nx\r\n"];
        assert_eq!(counted(&cut, &[(0, b"abc"), (1, b"def"), (2, b"gh"), (2, b"x")]), 2);
    }

    #[test]
    fn chunks_that_end_with_a_read_are_not_joined() {
        let at_the_end = [&b"3\r\nabc"[..], b"\r\n3\r\ndef", b"\r\n1\r\n", b"g\r\n"];
        assert_eq!(counted(&at_the_end, &[(0, b"abc"), (1, b"def"), (3, b"g")]), 3);
    }

    #[test]
    fn the_first_chunk_too_many_is_refused() {
        let (mut count, read) = (ChunkCount::default(), LastRead::default());
        let mut see = || count.see_in(b"a", read);
        assert!((0..MAX_CHUNKS).all(|_| see().is_ok()));
        assert_eq!(see(), Err(TooManyChunks));
    }
}

//! Joins the pieces of a body as they arrive.

use bytes::{BufMut, Bytes};
use galatea_types::{AlignedBlock, BUFFER_ALIGNMENT, MemoryReservation};

use crate::io::body_error::{BodyError, SizeLimit};

/// A body up to this size in bytes does not count to the budget: the number of connections bounds them.
const UNCOUNTED: usize = 4 << 10;
/// The most bytes of a chunked body in one read; its buffer grows to this size.
pub(crate) const READ_BUFFER: usize = 64 << 10;
/// The bytes that are asked of the budget at a time.
const COUNTED_AT_ONCE: usize = 64 << 10;
/// The size to which an announced length is allocated at once. Beyond it, the block grows to this many times the received bytes,
/// or to twice that if the rest then fits. Each step copies the received bytes and holds them twice meanwhile.
const BELIEVED: usize = 64 << 10;
const BELIEVED_TIMES: usize = 16;

pub(crate) struct BodyCollector<'m> {
    expected: usize,
    limit: SizeLimit,
    /// Bytes before the content, so that the data after the header is aligned.
    padding: usize,
    /// Is `true` if the content needs no alignment: a body in one piece is used as it is.
    has_free_placement: bool,
    whole: Option<Bytes>,
    block: Option<AlignedBlock>,
    /// The capacity of the block, padding included.
    room: usize,
    size: usize,
    memory: &'m mut MemoryReservation,
    /// The counted part of the size, rounded up. The socket's buffer is counted separately.
    counted: usize,
}

impl<'m> BodyCollector<'m> {
    /// Returns a collector. `expected` is the number of bytes that will come; 0 if not known.
    pub fn new(
        expected: usize,
        header_length: Option<usize>,
        limit: SizeLimit,
        memory: &'m mut MemoryReservation,
    ) -> Self {
        let behind_boundary = header_length.unwrap_or(0) % BUFFER_ALIGNMENT;
        Self {
            expected,
            limit,
            padding: (BUFFER_ALIGNMENT - behind_boundary) % BUFFER_ALIGNMENT,
            has_free_placement: header_length.is_none(),
            whole: None,
            block: None,
            room: 0,
            size: 0,
            memory,
            counted: 0,
        }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Adds the next piece. A piece that is the whole body is used as it is.
    pub fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        let is_first = self.whole.is_none() && self.block.is_none();
        if is_first && self.has_free_placement && data.len() >= self.expected {
            self.record_read(data.len())?;
            self.whole = Some(data);
            return Ok(());
        }
        self.extend(&data)
    }

    /// Adds a copy of the next piece.
    pub fn extend(&mut self, data: &[u8]) -> Result<(), BodyError> {
        self.record_read(data.len())?;
        let mut block = match self.block.take() {
            Some(block) if self.padding + self.size <= self.room => block,
            outgrown => self.grown(outgrown)?,
        };
        block.extend_from_slice(data);
        self.block = Some(block);
        Ok(())
    }

    /// Returns room for at most `most` bytes of a body as long as expected. The caller reports the bytes read into it
    /// with [`has_read`](Self::has_read).
    pub fn room(&mut self, most: usize) -> Result<impl BufMut, BodyError> {
        let block = match self.block.take() {
            Some(block) if self.padding + self.size < self.room => block,
            outgrown => self.grown(outgrown)?,
        };
        let room = self.room - self.padding - self.size;
        Ok(self.block.insert(block).spare(room.min(most)))
    }

    pub fn record_read(&mut self, count: usize) -> Result<(), BodyError> {
        self.size += count;
        self.limit.check(self.size)?;
        self.count()
    }

    /// Asks the budget for the received bytes that are not yet counted.
    fn count(&mut self) -> Result<(), BodyError> {
        if self.size > self.counted.max(UNCOUNTED) {
            let most = self.expected.max(self.size);
            let size = self.size.next_multiple_of(COUNTED_AT_ONCE).min(most);
            let buffer = if self.counted == 0 { READ_BUFFER.min(most) } else { 0 };
            self.memory.try_grow(size - self.counted + buffer)?;
            self.counted = size;
        }
        Ok(())
    }

    /// Returns the size to allocate for an announced length. A last step that would less than double the block is
    /// joined to the one before, because it would copy nearly everything.
    fn believed(&self) -> usize {
        let believed = BELIEVED.max(self.size.saturating_mul(BELIEVED_TIMES));
        if believed.saturating_mul(2) >= self.expected { self.expected } else { believed }
    }

    /// Returns a larger block with the bytes received so far.
    fn grown(&mut self, outgrown: Option<AlignedBlock>) -> Result<AlignedBlock, BodyError> {
        let capacity = if self.size > self.expected {
            // Without an announced length the block doubles.
            self.size.saturating_mul(if outgrown.is_some() { 2 } else { 1 })
        } else {
            self.believed()
        };
        let capacity = capacity.min(self.limit.most.max(self.size)).max(self.size);
        self.room = self.padding + capacity;
        let mut block =
            AlignedBlock::try_with_capacity(self.room).map_err(|_| BodyError::NoMemory)?;
        match outgrown {
            Some(mut outgrown) => block.extend_from_slice(outgrown.as_mut_slice()),
            None => {
                block.extend_zeroed(self.padding);
                block.extend_from_slice(self.whole.take().as_deref().unwrap_or_default());
            }
        }
        Ok(block)
    }

    pub fn finish(self) -> Bytes {
        let Some(block) = self.block else { return self.whole.unwrap_or_default() };
        let length = block.len();
        block.into_bytes().slice(self.padding..length)
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::MemoryBudget;

    use super::*;

    fn collect(pieces: &[&'static [u8]], header_length: Option<usize>) -> Result<Bytes, BodyError> {
        let expected = pieces.iter().map(|p| p.len()).sum();
        let mut memory = MemoryReservation::default();
        let mut collector =
            BodyCollector::new(expected, header_length, SizeLimit::of_json(100), &mut memory);
        pieces.iter().try_for_each(|p| collector.push(Bytes::from_static(p)))?;
        Ok(collector.finish())
    }

    #[test]
    fn binary_data_is_aligned_at_any_split_of_the_body() {
        for pieces in [&[&b"{json}DATA"[..]][..], &[b"{js", b"on}DA", b"TA"], &[b"{json}", b"DATA"]]
        {
            let body = collect(pieces, Some(6)).expect("short body");
            assert_eq!(&body[..], b"{json}DATA");
            let data = body.slice(6..10);
            assert!(data.as_ptr().addr().is_multiple_of(BUFFER_ALIGNMENT));
        }
    }

    #[test]
    fn long_bodies_are_complete_and_aligned_with_and_without_a_length() {
        let content: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        for expected in [content.len(), 0] {
            let mut memory = MemoryReservation::default();
            let mut collector = BodyCollector::new(expected, Some(7), SizeLimit::NONE, &mut memory);
            for piece in content.chunks(50_000) {
                collector.push(Bytes::copy_from_slice(piece)).expect("no limit");
            }
            let body = collector.finish();
            assert!(body == content);
            assert!(body.slice(7..).as_ptr().addr().is_multiple_of(BUFFER_ALIGNMENT));
        }
    }

    #[test]
    fn json_in_one_piece_is_not_copied() {
        let piece: &'static [u8] = b"{\"inputs\":[]}";
        assert_eq!(collect(&[piece], None).expect("short").as_ptr(), piece.as_ptr());
        assert_eq!(&collect(&[b"{\"a\"", b":1}"], None).expect("short")[..], b"{\"a\":1}");
        assert!(collect(&[], None).expect("empty").is_empty());
    }

    #[test]
    fn bodies_of_unknown_length_are_limited() {
        let mut memory = MemoryReservation::default();
        let mut collector = BodyCollector::new(0, None, SizeLimit::of_json(100), &mut memory);
        collector.push(Bytes::from_static(&[b' '; 60])).expect("below");
        let error = collector.push(Bytes::from_static(&[b' '; 60])).expect_err("above");
        assert!(error.to_string().starts_with("request JSON size of 120 bytes exceeds"), "{error}");
    }

    #[test]
    fn memory_of_an_announced_body_grows_with_received_bytes() {
        let budget = MemoryBudget::new(1 << 20);
        let mut memory = budget.reservation();
        let mut collector = BodyCollector::new(1 << 30, None, SizeLimit::NONE, &mut memory);
        let piece = Bytes::from(vec![0; 10_000]);
        collector.push(piece.clone()).expect("little");
        assert!(collector.room <= 10_000 * BELIEVED_TIMES + BUFFER_ALIGNMENT, "{}", collector.room);
        let refused = (0..1000).find_map(|_| collector.push(piece.clone()).err());
        assert!(matches!(refused, Some(BodyError::OverBudget(_))), "{refused:?}");
        drop(memory);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn an_announced_body_never_reserves_more_than_its_length() {
        let length = 60_000_000;
        let mut memory = MemoryReservation::default();
        let mut collector = BodyCollector::new(length, Some(100), SizeLimit::NONE, &mut memory);
        let piece = Bytes::from(vec![0; 250_000]);
        let mut rooms = vec![];
        for _ in 0..length / piece.len() {
            collector.push(piece.clone()).expect("within the length");
            rooms.push(collector.room);
        }
        rooms.dedup();
        assert!(rooms.iter().all(|room| *room <= length + BUFFER_ALIGNMENT), "{rooms:?}");
        assert!(rooms.is_sorted() && rooms.len() <= 3, "{rooms:?}");
        let copied: usize = rooms.iter().rev().skip(1).sum();
        assert!(copied <= length / 4, "{rooms:?}");
    }

    #[test]
    fn a_body_counts_once_with_its_read_buffer() {
        let budget = MemoryBudget::new(1 << 20);
        for (size, counted) in [(4000, 0), (5000, 2 * 5000), (100_000, 100_000 + READ_BUFFER)] {
            let mut memory = budget.reservation();
            let mut collector = BodyCollector::new(size, None, SizeLimit::NONE, &mut memory);
            vec![0; size].chunks(3000).for_each(|piece| {
                collector.push(Bytes::copy_from_slice(piece)).expect("within the budget");
            });
            assert_eq!(memory.bytes(), counted);
        }
    }
}

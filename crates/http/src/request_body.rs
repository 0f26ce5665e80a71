//! Reading request bodies, so that binary tensors in them are aligned without another copy.

use bytes::Bytes;
use galatea_types::{AlignedBlock, BUFFER_ALIGNMENT};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::body_error::BodyError;

/// Reads a whole request body, of at most `limit` bytes.
///
/// With a `header_length` the byte behind the JSON header, where the first binary tensor starts, lies on
/// [`BUFFER_ALIGNMENT`]: one copy from the socket's buffer, and none after it.
pub(crate) async fn read(
    body: &mut Incoming,
    header_length: Option<usize>,
    limit: usize,
) -> Result<Bytes, BodyError> {
    let length = body.size_hint().exact();
    let expected = usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX);
    if expected > limit {
        return Err(BodyError::TooLarge { size: expected, limit });
    }
    let mut collector = Collector::new(expected, header_length, limit);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(BodyError::Read)?;
        if let Ok(data) = frame.into_data() {
            collector.push(data)?;
        }
    }
    Ok(collector.finish())
}

/// Reads what is left of a body that no handler read, so that the connection can serve the next request; not
/// more than `limit` bytes, beyond which closing the connection is cheaper.
pub(crate) async fn discard(body: &mut Incoming, limit: usize) {
    let mut left = limit as u64;
    if body.size_hint().lower() > left {
        return;
    }
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(rest) = left.checked_sub(size) else { return };
        left = rest;
    }
}

/// Joins the pieces of a body.
pub(crate) struct Collector {
    expected: usize,
    limit: usize,
    /// Bytes before the content, so that what follows the header is aligned.
    padding: usize,
    /// The content needs no alignment: a body in one piece is used as it is.
    has_free_placement: bool,
    whole: Option<Bytes>,
    block: Option<AlignedBlock>,
    size: usize,
}

impl Collector {
    /// `expected`: how many bytes will come, 0 where that is not known.
    pub fn new(expected: usize, header_length: Option<usize>, limit: usize) -> Self {
        let behind_boundary = header_length.unwrap_or(0) % BUFFER_ALIGNMENT;
        Self {
            expected,
            limit,
            padding: (BUFFER_ALIGNMENT - behind_boundary) % BUFFER_ALIGNMENT,
            has_free_placement: header_length.is_none(),
            whole: None,
            block: None,
            size: 0,
        }
    }

    pub fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        self.size += data.len();
        if self.size > self.limit {
            return Err(BodyError::TooLarge { size: self.size, limit: self.limit });
        }
        let is_first = self.whole.is_none() && self.block.is_none();
        if is_first && self.has_free_placement && self.size >= self.expected {
            self.whole = Some(data);
            return Ok(());
        }
        let (padding, expected) = (self.padding, self.expected.max(self.size));
        let whole = self.whole.take();
        let block = self.block.get_or_insert_with(|| {
            let mut block = AlignedBlock::with_capacity(padding + expected);
            block.extend_zeroed(padding);
            block.extend_from_slice(whole.as_deref().unwrap_or_default());
            block
        });
        block.extend_from_slice(&data);
        Ok(())
    }

    pub fn finish(self) -> Bytes {
        let Some(block) = self.block else { return self.whole.unwrap_or_default() };
        let length = block.len();
        block.into_bytes().slice(self.padding..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(pieces: &[&'static [u8]], header_length: Option<usize>) -> Result<Bytes, BodyError> {
        let expected = pieces.iter().map(|p| p.len()).sum();
        let mut collector = Collector::new(expected, header_length, 100);
        pieces.iter().try_for_each(|p| collector.push(Bytes::from_static(p)))?;
        Ok(collector.finish())
    }

    #[test]
    fn binary_data_is_aligned_however_the_body_is_cut() {
        for pieces in [&[&b"{json}DATA"[..]][..], &[b"{js", b"on}DA", b"TA"], &[b"{json}", b"DATA"]]
        {
            let body = collect(pieces, Some(6)).expect("short body");
            assert_eq!(&body[..], b"{json}DATA");
            let data = body.slice(6..10);
            assert!(data.as_ptr().addr().is_multiple_of(BUFFER_ALIGNMENT));
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
    fn the_limit_holds_for_bodies_of_unknown_length() {
        let mut collector = Collector::new(0, None, 100);
        collector.push(Bytes::from_static(&[b' '; 60])).expect("below");
        let error = collector.push(Bytes::from_static(&[b' '; 60])).expect_err("above");
        assert!(error.to_string().starts_with("request JSON size of 120 bytes exceeds"), "{error}");
    }
}

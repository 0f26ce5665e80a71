//! Any bytes as the message of an inference request.

use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_protocol::grpc::{Pieces, RequestMessage, decode};

use crate::{
    memory::{Bound, bounded},
    values::MODEL,
};

/// What a short message may take; a long one takes four times its bytes at most.
pub const BOUND: Bound = Bound { per_byte: 64, base: 64 << 10 };

/// No bytes make the reader panic, however the network cuts them, and the cut makes no difference to what is read.
/// The first byte is the size of the pieces.
pub fn run(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let model = &*MODEL;
    let cut = bounded(bytes.len(), BOUND, || RequestMessage::read(pieces(bytes, size)).ok());
    let whole = bounded(bytes.len(), BOUND, || RequestMessage::read(pieces(bytes, u8::MAX)).ok());
    assert_eq!(format!("{cut:?}"), format!("{whole:?}"));
    let decoded = |message: Option<RequestMessage>| {
        bounded(bytes.len(), BOUND, || Some(decode(message?, model, &RegionTable::default())))
    };
    // Not-a-number differs from itself, so the comparison is by what is printed.
    assert_eq!(format!("{:?}", decoded(cut)), format!("{:?}", decoded(whole)));
}

/// The bytes as they come from the network, in pieces of a size.
pub fn pieces(bytes: &[u8], size: u8) -> Pieces {
    let mut pieces = Pieces::default();
    let size = if size == u8::MAX { bytes.len().max(1) } else { usize::from(size) + 1 };
    bytes.chunks(size).for_each(|chunk| pieces.push(Bytes::copy_from_slice(chunk)));
    pieces
}

//! Reading request bodies, so that binary tensors in them are aligned without another copy.

use bytes::Bytes;
use galatea_types::MemoryReservation;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    body_error::{BodyError, SizeLimit},
    collector::Collector,
    wire::{ChunkCount, Wire},
};

/// After so many bytes of one body the other connections of the thread have their turn, also those that only now become
/// ready. Reading them takes a fraction of a millisecond; hyper reads a mebibyte before it gives way, and tokio looks for
/// other connections that have become ready only after many such turns.
const TURN: usize = 256 << 10;

/// Most bytes read of a body that is refused, so that a client that sends all before it reads gets its answer.
const DISCARDED: usize = 256 << 20;
/// The work for a piece of such a body is that for so many bytes: a body of one-byte chunks ends after a million.
const LEAST_DISCARDED: usize = 256;

/// Reads a whole request body, of at most `limit` bytes.
///
/// With a `header_length` the byte behind the JSON header, where the first binary tensor starts, lies on
/// [`BUFFER_ALIGNMENT`](galatea_types::BUFFER_ALIGNMENT): one copy from the socket's buffer, and none after it.
/// Memory is taken as bytes come, whatever length was announced, and counted to `memory`.
pub(crate) async fn read(
    body: &mut Incoming,
    wire: &Wire,
    header_length: Option<usize>,
    limit: SizeLimit,
    memory: &mut MemoryReservation,
) -> Result<Bytes, BodyError> {
    let length = body.size_hint().exact();
    let expected = usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX);
    limit.check(expected)?;
    let mut collector = Collector::new(expected, header_length, limit, memory);
    let mut chunks = length.is_none().then(ChunkCount::default);
    let mut left_of_turn = TURN;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(BodyError::Read)?;
        if let Ok(data) = frame.into_data() {
            if let Some(chunks) = &mut chunks {
                chunks.see(&data, wire)?;
            }
            let size = data.len();
            collector.push(data)?;
            left_of_turn = after(size, left_of_turn).await;
        }
    }
    Ok(collector.finish())
}

/// Reads what is left of a body that no handler read, so that the client reads its answer and the
/// connection can serve the next request. Beyond a bound the connection is closed.
pub(crate) async fn discard(body: &mut Incoming) {
    let mut left = DISCARDED;
    let mut left_of_turn = TURN;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(size.max(LEAST_DISCARDED)) else { return };
        left = rest;
        left_of_turn = after(size, left_of_turn).await;
    }
}

/// Gives way once a turn is over. Returns what is left of the turn.
async fn after(size: usize, left_of_turn: usize) -> usize {
    match left_of_turn.checked_sub(size) {
        Some(left) => left,
        None => {
            tokio::task::yield_now().await;
            TURN
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    #[test]
    fn a_long_body_lets_the_other_connections_of_its_thread_have_their_turn() {
        let mut context = Context::from_waker(Waker::noop());
        let mut given_way = |size, left| {
            let mut turn = pin!(after(size, left));
            let first = turn.as_mut().poll(&mut context);
            if first.is_pending() { (true, turn.poll(&mut context)) } else { (false, first) }
        };
        assert_eq!(given_way(1000, TURN), (false, Poll::Ready(TURN - 1000)));
        assert_eq!(given_way(64 << 10, 1000), (true, Poll::Ready(TURN)));
    }
}

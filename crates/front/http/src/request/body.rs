//! Reads request bodies so that their binary tensors are aligned without another copy.

use std::future::poll_fn;

use bytes::Bytes;
use galatea_frontend::CallAccount;
use galatea_http1::Framing;
use galatea_types::{ClientShare, LockExt, MemoryReservation};

use crate::{
    io::{
        TURN,
        body_error::{BodyError, SizeLimit},
        collector::BodyCollector,
    },
    state::Connection,
};

pub(crate) struct BodyMemory<'r> {
    /// The reservation in the server's budget.
    pub memory: &'r mut MemoryReservation,
    /// The share of the client's limits, if there are limits and the length was not announced.
    pub share: Option<(&'r CallAccount, &'r mut ClientShare)>,
}

/// Reads a whole request body of at most `limit` bytes.
///
/// With a `header_length` the byte after the JSON header, where the first binary tensor starts, is aligned to
/// [`BUFFER_ALIGNMENT`](galatea_types::BUFFER_ALIGNMENT). A short body is copied there from the bytes read with its
/// head; a long one is read directly to its final place. Memory is allocated as bytes arrive, whatever length was
/// announced, and counted as `taken`.
pub(crate) async fn read(
    connection: &Connection,
    framing: Framing,
    header_length: Option<usize>,
    limit: SizeLimit,
    taken: BodyMemory<'_>,
) -> Result<Bytes, BodyError> {
    let expected = usize::try_from(framing.length().unwrap_or(0)).unwrap_or(usize::MAX);
    limit.check(expected)?;
    let BodyMemory { memory, mut share } = taken;
    let mut collector = BodyCollector::new(expected, header_length, limit, memory);
    let mut left_of_turn = TURN;
    loop {
        let before = collector.size();
        let read_some =
            poll_fn(|context| connection.io.lock_unpoisoned().poll_body(context, &mut collector));
        let is_whole = read_some.await?;
        let came = collector.size() - before;
        if came > 0
            && let Some((account, share)) = &mut share
        {
            account.grow(share, came)?;
        }
        if is_whole {
            return Ok(collector.finish());
        }
        left_of_turn = after(came, left_of_turn).await;
    }
}

/// Yields to other connections once a turn is over. Returns the rest of the turn.
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
    fn a_long_body_yields_to_other_connections_of_its_thread() {
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

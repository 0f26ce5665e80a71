//! Reading request bodies, so that binary tensors in them are aligned without another copy.

use bytes::Bytes;
use galatea_types::MemoryReservation;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{body_error::BodyError, collector::Collector};

/// Reads a whole request body, of at most `limit` bytes.
///
/// With a `header_length` the byte behind the JSON header, where the first binary tensor starts, lies on
/// [`BUFFER_ALIGNMENT`](galatea_types::BUFFER_ALIGNMENT): one copy from the socket's buffer, and none after it.
/// Memory is taken as bytes come, whatever length was announced, and counted to `memory`.
pub(crate) async fn read(
    body: &mut Incoming,
    header_length: Option<usize>,
    limit: usize,
    memory: &mut MemoryReservation,
) -> Result<Bytes, BodyError> {
    let length = body.size_hint().exact();
    let expected = usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX);
    if expected > limit {
        return Err(BodyError::TooLarge { size: expected, limit });
    }
    let mut collector = Collector::new(expected, header_length, limit, memory);
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

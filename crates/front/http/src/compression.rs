//! Compressed bodies of inference requests and responses: gzip and deflate, by the headers.

use bytes::Bytes;
use galatea_frontend::{CompressionFormat, HeavyWork};
use galatea_http1::{RequestHead, visible_text};
use galatea_types::MemoryReservation;

use crate::{
    io::{
        body_error::{BodyError, SizeLimit},
        collector::BodyCollector,
    },
    state::ServerState,
};

/// Returns the format of a request's body, if it has one. Fails for a format that the server does not support.
pub(crate) fn format_of_request(
    headers: &RequestHead,
) -> Result<Option<CompressionFormat>, UnknownCoding> {
    headers.get("content-encoding").map_or(Ok(None), named)
}

/// Returns the format with the highest weight that a client accepts; of equal ones the first.
pub(crate) fn format_for_response(headers: &RequestHead) -> Option<CompressionFormat> {
    let values = headers.get_all("accept-encoding").filter_map(visible_text);
    let mut best = (0.0, None);
    for (format, weight) in values.flat_map(|v| v.split(',')).filter_map(weighed) {
        if weight > best.0 {
            best = (weight, format);
        }
    }
    best.1
}

/// The error for a coding that the server does not support.
#[derive(Debug)]
pub(crate) struct UnknownCoding;

fn named(name: &[u8]) -> Result<Option<CompressionFormat>, UnknownCoding> {
    match name {
        b"identity" => Ok(None),
        name => CompressionFormat::named(name).map(Some).ok_or(UnknownCoding),
    }
}

/// Parses an element of `Accept-Encoding`.
fn weighed(range: &str) -> Option<(Option<CompressionFormat>, f32)> {
    let mut parts = range.split(';').map(str::trim);
    let format = named(parts.next()?.as_bytes()).ok()?;
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse);
    Some((format, weight.ok()?))
}

/// Decompresses a body, at most to the longest allowed body, and aligns the bytes after a header of `header_length`
/// bytes. `memory` counts the compressed body first, and the content afterwards.
pub(crate) async fn decompress(
    state: &ServerState,
    body: Bytes,
    header_length: Option<usize>,
    memory: &mut MemoryReservation,
) -> Result<Bytes, BodyError> {
    // The length of the content is only known afterwards. If it turns out to be long, it is decompressed anew on another thread.
    let short = HeavyWork::MIN_BYTES.min(state.options.max_input_size);
    if body.len() <= short
        && let Ok(content) = decompress_now(&body, header_length, short, memory)
    {
        return Ok(content);
    }
    let limit = state.options.max_input_size;
    let mut taken = std::mem::take(memory);
    taken.shrink_to(body.len());
    let work = move || {
        let mut content = taken.sibling();
        let result = decompress_now(&body, header_length, limit, &mut content);
        (result, content)
    };
    let (result, content) = state.options.heavy_work.run(work).await?;
    *memory = content;
    result
}

fn decompress_now(
    body: &[u8],
    header_length: Option<usize>,
    limit: usize,
    memory: &mut MemoryReservation,
) -> Result<Bytes, BodyError> {
    if body.is_empty() {
        return Err(BodyError::Empty);
    }
    let mut into = BodyCollector::new(0, header_length, SizeLimit::of_decompressed(limit), memory);
    // Either format is accepted under either name.
    let is_gzip = body.starts_with(&[0x1f, 0x8b]);
    let format = if is_gzip { CompressionFormat::Gzip } else { CompressionFormat::Deflate };
    format.decompress(body, body.len(), |piece| into.push(piece))?;
    Ok(into.finish())
}

/// Compresses the pieces as one body. Returns `None` on failure.
pub(crate) async fn compress(
    state: &ServerState,
    format: CompressionFormat,
    pieces: Vec<Bytes>,
) -> Option<Vec<u8>> {
    let compressed = format.compress_at(&state.options.heavy_work, pieces).await;
    compressed.inspect_err(|e| log::warn!("failed to compress a response: {e}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::sent_head;

    fn chosen(accepted: &'static str) -> Option<CompressionFormat> {
        format_for_response(&sent_head::with(&[("Accept-Encoding", accepted)]))
    }

    #[test]
    fn the_encoding_of_the_highest_weight_is_chosen() {
        const GZIP: Option<CompressionFormat> = Some(CompressionFormat::Gzip);
        const DEFLATE: Option<CompressionFormat> = Some(CompressionFormat::Deflate);
        for (accepted, coding) in [
            ("gzip", GZIP),
            ("deflate", DEFLATE),
            ("gzip, deflate", GZIP),
            ("deflate, gzip", DEFLATE),
            ("gzip;q=0.5, deflate;q=0.8", DEFLATE),
            ("gzip;q=0.5, identity;q=0.6", None),
            ("gzip;q=0.5,identity;q=0.5", GZIP),
            ("identity;q=0.5,gzip;q=0.5", None),
            ("br, gzip;q=0.2", GZIP),
            ("*;q=1, gzip;q=0.5", GZIP),
            ("gzip;q=0", None),
            ("gzip;q=x", None),
            ("gzip;q=NaN", None),
            ("GZIP", None),
            ("br", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(chosen(accepted), coding, "{accepted}");
        }
    }

    fn decompress_now(
        body: &[u8],
        header_length: Option<usize>,
        limit: usize,
    ) -> Result<Bytes, BodyError> {
        super::decompress_now(body, header_length, limit, &mut MemoryReservation::default())
    }

    fn packed(format: CompressionFormat, content: &[u8]) -> Vec<u8> {
        format.compress(&[Bytes::copy_from_slice(content)]).expect("in memory")
    }

    #[test]
    fn both_formats_round_trip() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        for format in [CompressionFormat::Deflate, CompressionFormat::Gzip] {
            let body = packed(format, &content);
            let found = decompress_now(&body, Some(7), usize::MAX).expect("whole");
            assert_eq!(&found[..], &content[..]);
            let tail = found.slice(7..);
            assert!(tail.as_ptr().addr().is_multiple_of(galatea_types::BUFFER_ALIGNMENT));
        }
    }

    #[test]
    fn damaged_bodies_are_refused() {
        let body = packed(CompressionFormat::Gzip, b"{\"inputs\":[]}");
        for body in [&b"hello"[..], b"", &body[..body.len() - 9], &body[..4]] {
            decompress_now(body, None, 1000).expect_err("damaged");
        }
    }

    #[test]
    fn decompressed_size_and_ratio_are_limited() {
        let zeros = vec![0; (16 << 20) + 1];
        let body = packed(CompressionFormat::Deflate, &zeros);
        let error = decompress_now(&body, None, 1 << 20).expect_err("too long");
        assert!(
            error.to_string().contains("exceeds the maximum allowed input size of 1048576 bytes")
        );
        let error = decompress_now(&body, None, usize::MAX).expect_err("too much growth");
        assert!(error.to_string().contains("100 times its size"), "{error}");
        let body = packed(CompressionFormat::Deflate, &zeros[..1 << 20]);
        assert_eq!(decompress_now(&body, None, 1 << 20).expect("just fits").len(), 1 << 20);
    }
}

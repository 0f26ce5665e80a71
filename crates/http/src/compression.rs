//! Compressed bodies of inference requests and responses: gzip and deflate, as the headers say.

use std::io;

use bytes::Bytes;
use galatea_frontend::{CompressionFormat, HeavyWork};
use galatea_http1::{RequestHead, visible_text};
use galatea_types::MemoryReservation;

use crate::{
    body_error::{BodyError, SizeLimit},
    collector::Collector,
    state::ServerState,
};

/// Responses from this size on are not compressed on the connection's thread: that takes ten times as long as other
/// work on as many bytes.
const LONG: usize = 8 << 10;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    /// The zlib format.
    Deflate,
    Gzip,
}

impl Coding {
    /// How the body of a request comes; `None` where we do not understand it.
    pub fn of_request(headers: &RequestHead) -> Option<Self> {
        headers.get("content-encoding").map_or(Some(Self::Identity), Self::named)
    }

    /// The coding of highest weight that we have; of equal ones the first. A failed compression falls back to none.
    pub fn for_response(headers: &RequestHead) -> Self {
        let values = headers.get_all("accept-encoding").filter_map(visible_text);
        let mut best = (0.0, Self::Identity);
        for (coding, weight) in values.flat_map(|v| v.split(',')).filter_map(weighed) {
            if weight > best.0 {
                best = (weight, coding);
            }
        }
        best.1
    }

    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"identity" => Some(Self::Identity),
            b"deflate" => Some(Self::Deflate),
            b"gzip" => Some(Self::Gzip),
            _ => None,
        }
    }

    /// The value of `Content-Encoding`.
    pub fn header_value(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
        }
    }
}

/// An element of `Accept-Encoding`.
fn weighed(range: &str) -> Option<(Coding, f32)> {
    let mut parts = range.split(';').map(str::trim);
    let coding = Coding::named(parts.next()?.as_bytes())?;
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse);
    Some((coding, weight.ok()?))
}

/// The content of a compressed body, at most as long as a body may be, with what lies behind a header of
/// `header_length` bytes aligned. `memory` holds the compressed body, and afterwards the content.
pub(crate) async fn decompress(
    state: &ServerState,
    body: Bytes,
    header_length: Option<usize>,
    memory: &mut MemoryReservation,
) -> Result<Bytes, BodyError> {
    // How long the content is shows only when it is there: what turns out to be long is begun anew elsewhere.
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
    let mut into = Collector::new(0, header_length, SizeLimit::of_decompressed(limit), memory);
    // Either format is taken under either name.
    let is_gzip = body.starts_with(&[0x1f, 0x8b]);
    let format = if is_gzip { CompressionFormat::Gzip } else { CompressionFormat::Deflate };
    format.decompress(body, body.len(), |piece| into.push(piece))?;
    Ok(into.finish())
}

/// The pieces of a body as one compressed one; `None` where that fails.
pub(crate) async fn compress(
    state: &ServerState,
    coding: Coding,
    pieces: Vec<Bytes>,
) -> Option<Vec<u8>> {
    let size: usize = pieces.iter().map(Bytes::len).sum();
    let work = move || compress_now(coding, &pieces);
    let result = if size < LONG {
        work()
    } else {
        let result = state.options.heavy_work.run(work).await;
        result.unwrap_or_else(|error| Err(io::Error::other(error)))
    };
    result.inspect_err(|e| log::warn!("failed to compress a response: {e}")).ok()
}

fn compress_now(coding: Coding, pieces: &[Bytes]) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Identity => Ok(pieces.concat()),
        Coding::Deflate => CompressionFormat::Deflate.compress(pieces),
        Coding::Gzip => CompressionFormat::Gzip.compress(pieces),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent_head;

    fn chosen(accepted: &'static str) -> Coding {
        Coding::for_response(&sent_head::with(&[("Accept-Encoding", accepted)]))
    }

    #[test]
    fn the_highest_weight_wins_and_the_first_of_equals() {
        use Coding::{Deflate, Gzip, Identity};
        for (accepted, coding) in [
            ("gzip", Gzip),
            ("deflate", Deflate),
            ("gzip, deflate", Gzip),
            ("deflate, gzip", Deflate),
            ("gzip;q=0.5, deflate;q=0.8", Deflate),
            ("gzip;q=0.5, identity;q=0.6", Identity),
            ("gzip;q=0.5,identity;q=0.5", Gzip),
            ("identity;q=0.5,gzip;q=0.5", Identity),
            ("br, gzip;q=0.2", Gzip),
            ("*;q=1, gzip;q=0.5", Gzip),
            ("gzip;q=0", Identity),
            ("gzip;q=x", Identity),
            ("gzip;q=NaN", Identity),
            ("GZIP", Identity),
            ("br", Identity),
            ("*", Identity),
            ("", Identity),
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

    fn packed(coding: Coding, content: &[u8]) -> Vec<u8> {
        compress_now(coding, &[Bytes::copy_from_slice(content)]).expect("in memory")
    }

    #[test]
    fn both_formats_both_ways() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        for coding in [Coding::Deflate, Coding::Gzip] {
            let body = packed(coding, &content);
            let found = decompress_now(&body, Some(7), usize::MAX).expect("whole");
            assert_eq!(&found[..], &content[..]);
            let tail = found.slice(7..);
            assert!(tail.as_ptr().addr().is_multiple_of(galatea_types::BUFFER_ALIGNMENT));
        }
    }

    #[test]
    fn damaged_bodies_are_refused() {
        let body = packed(Coding::Gzip, b"{\"inputs\":[]}");
        for body in [&b"hello"[..], b"", &body[..body.len() - 9], &body[..4]] {
            decompress_now(body, None, 1000).expect_err("damaged");
        }
    }

    #[test]
    fn growth_is_limited_in_size_and_in_ratio() {
        let zeros = vec![0; (16 << 20) + 1];
        let body = packed(Coding::Deflate, &zeros);
        let error = decompress_now(&body, None, 1 << 20).expect_err("too long");
        assert!(
            error.to_string().contains("exceeds the maximum allowed input size of 1048576 bytes")
        );
        let error = decompress_now(&body, None, usize::MAX).expect_err("too much growth");
        assert!(error.to_string().contains("100 times its size"), "{error}");
        let body = packed(Coding::Deflate, &zeros[..1 << 20]);
        assert_eq!(decompress_now(&body, None, 1 << 20).expect("just fits").len(), 1 << 20);
    }
}

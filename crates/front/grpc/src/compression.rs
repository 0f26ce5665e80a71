//! Compressed messages: the formats that a client sends and accepts, and the conversion.

use bytes::{Buf, Bytes};
use galatea_frontend::{CompressionFormat, DecompressError, HeavyWork};
use galatea_protocol::grpc::Pieces;
use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::Status;

use crate::{
    message::{MaxLength, Message, over_budget, prefix},
    options::ResponseCompression,
};

/// The header with the compression format of the messages of a call.
pub(crate) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING_NAME: &str = "grpc-accept-encoding";
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static(ACCEPT_ENCODING_NAME);
const ACCEPTED: &str = "identity, deflate, gzip";

/// Returns the format of flagged messages of a request; `None` if none may be flagged.
///
/// # Errors
/// When the encoding is not supported, even if no message is flagged.
pub(crate) fn format_of_request(headers: &HeaderMap) -> Result<Option<CompressionFormat>, Status> {
    let Some(name) = headers.get(ENCODING) else { return Ok(None) };
    if name == "identity" {
        return Ok(None);
    }
    CompressionFormat::named(name.as_bytes()).map(Some).ok_or_else(|| {
        let name = String::from_utf8_lossy(name.as_bytes());
        let text = format!("grpc-encoding '{name}' is not supported; take one of {ACCEPTED}");
        let mut status = Status::unimplemented(text);
        if let Ok(accepted) = ACCEPTED.parse() {
            status.metadata_mut().insert(ACCEPT_ENCODING_NAME, accepted);
        }
        status
    })
}

/// Returns the format of the messages of a response, chosen by the server's level and the formats that the client accepts.
///
/// If both are accepted, the low level uses gzip and the others deflate, as in the common library.
pub(crate) fn format_of_response(
    level: ResponseCompression,
    headers: &HeaderMap,
) -> Option<CompressionFormat> {
    if level == ResponseCompression::None {
        return None;
    }
    let accepted = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|v| v.to_str().ok());
    let names = accepted.flat_map(|value| value.split(',')).map(|name| name.trim().as_bytes());
    let formats: Vec<_> = names.filter_map(CompressionFormat::named).collect();
    let wanted = match level {
        ResponseCompression::None | ResponseCompression::Low => CompressionFormat::Gzip,
        ResponseCompression::Medium | ResponseCompression::High => CompressionFormat::Deflate,
    };
    formats.iter().find(|&&format| format == wanted).or(formats.first()).copied()
}

pub(crate) fn announce(format: Option<CompressionFormat>, headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    if let Some(format) = format {
        headers.insert(ENCODING, HeaderValue::from_static(format.name()));
    }
}

/// Decompresses a flagged message. The budget is charged as the content grows.
pub(crate) async fn decompress(
    message: Message,
    format: CompressionFormat,
    max_length: MaxLength,
    heavy_work: &HeavyWork,
) -> Result<Message, Status> {
    let length = message.bytes.remaining();
    if length == 0 {
        return Ok(message);
    }
    // The length of the content is only known afterwards. If it turns out to be long, it is decompressed anew on another thread.
    if !HeavyWork::is_heavy(length) {
        let short = max_length.at_most(HeavyWork::MIN_BYTES);
        if let Ok(content) = decompress_now(&message, format, short) {
            return Ok(content);
        }
    }
    let work = move || decompress_now(&message, format, max_length);
    let content = heavy_work.run(work).await;
    content.unwrap_or_else(|error| Err(Status::resource_exhausted(error.to_string())))
}

fn decompress_now(
    message: &Message,
    format: CompressionFormat,
    max_length: MaxLength,
) -> Result<Message, Status> {
    let mut memory = message.memory.sibling();
    let mut content = Pieces::default();
    let compressed = message.bytes.clone();
    let length = compressed.remaining();
    let take = |piece: Bytes| {
        max_length.check_decompressed(content.remaining() + piece.len())?;
        memory.try_grow(piece.len()).map_err(over_budget)?;
        content.push(piece);
        Ok(())
    };
    match format.decompress(compressed.reader(), length, take) {
        Ok(true) => Ok(Message { bytes: content, memory }),
        Ok(false) | Err(DecompressError::Damaged(_)) => Err(damaged(format)),
        Err(DecompressError::NotTaken(status)) => Err(status),
        Err(error) => Err(Status::invalid_argument(format!("the request's message {error}"))),
    }
}

fn damaged(format: CompressionFormat) -> Status {
    let name = format.name();
    Status::internal(format!("Unexpected error decompressing data for algorithm {name}"))
}

/// Frames a message of a response in pieces, and compresses it if that makes it shorter.
pub(crate) async fn compress(
    pieces: Vec<Bytes>,
    format: CompressionFormat,
    heavy_work: &HeavyWork,
) -> Vec<Bytes> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    // Shared, not copied.
    let compressed = format.compress_at(heavy_work, pieces.clone()).await;
    match compressed {
        Ok(compressed) if compressed.len() < length => {
            let mut head = prefix(compressed.len());
            head[0] = 1;
            vec![Bytes::copy_from_slice(&head), compressed.into()]
        }
        Ok(_) => framed(length, pieces),
        Err(error) => {
            log::warn!("grpc: sent a response uncompressed because compression failed: {error}");
            framed(length, pieces)
        }
    }
}

fn framed(length: usize, pieces: Vec<Bytes>) -> Vec<Bytes> {
    let head = Bytes::copy_from_slice(&prefix(length));
    std::iter::once(head).chain(pieces).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compression_level_selects_among_the_clients_encodings() {
        use CompressionFormat::{Deflate, Gzip};
        use ResponseCompression::{High, Low, Medium, None as Never};
        for (accepted, never, low, medium, high) in [
            ("identity, deflate, gzip", None, Some(Gzip), Some(Deflate), Some(Deflate)),
            ("gzip,deflate", None, Some(Gzip), Some(Deflate), Some(Deflate)),
            ("gzip", None, Some(Gzip), Some(Gzip), Some(Gzip)),
            ("deflate", None, Some(Deflate), Some(Deflate), Some(Deflate)),
            ("identity", None, None, None, None),
            ("br, gzip;q=0", None, None, None, None),
            ("", None, None, None, None),
        ] {
            let value = HeaderValue::from_static(accepted);
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value)]);
            let found = [Never, Low, Medium, High].map(|level| format_of_response(level, &headers));
            assert_eq!(found, [never, low, medium, high], "{accepted}");
        }
    }
}

//! `grpc-encoding`: gzip, and deflate in zlib's format.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::{
    Compression as Level,
    read::{MultiGzDecoder, ZlibDecoder},
    write::{GzEncoder, ZlibEncoder},
};

use crate::Compression;

impl Compression {
    /// Returns the name in `grpc-encoding`; `None` leaves the header out.
    pub(super) fn encoding(self) -> Option<&'static str> {
        match self {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Deflate => Some("deflate"),
        }
    }
}

/// Compresses the parts, one after another, as one message.
pub(super) fn compress<'a>(
    compression: Compression,
    parts: impl Iterator<Item = &'a [u8]>,
) -> io::Result<Vec<u8>> {
    match compression {
        Compression::None => Ok(parts.fold(Vec::new(), |mut joined, part| {
            joined.extend_from_slice(part);
            joined
        })),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Level::default());
            write_all(&mut encoder, parts)?;
            encoder.finish()
        }
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Level::default());
            write_all(&mut encoder, parts)?;
            encoder.finish()
        }
    }
}

fn write_all<'a>(to: &mut impl Write, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    for part in parts {
        to.write_all(part)?;
    }
    Ok(())
}

/// Decompresses a message. `encoding`: the response's `grpc-encoding`. `None` if more than `limit` bytes come out.
pub(super) fn decompress(
    encoding: &str,
    message: &[u8],
    limit: usize,
) -> io::Result<Option<Bytes>> {
    let mut plain = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match encoding {
        "gzip" => MultiGzDecoder::new(message).take(most).read_to_end(&mut plain)?,
        "deflate" => ZlibDecoder::new(message).take(most).read_to_end(&mut plain)?,
        _ => return Err(io::Error::other(format!("unknown encoding '{encoding}'"))),
    };
    Ok((plain.len() <= limit).then(|| plain.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_compressed_and_decompressed() {
        let (one, two) = ([7u8; 1000], *b"end");
        for compression in [Compression::Gzip, Compression::Deflate] {
            let parts = [&one[..], &two[..]];
            let packed = compress(compression, parts.into_iter()).unwrap();
            assert!(packed.len() < 100, "{compression:?} {}", packed.len());
            let encoding = compression.encoding().unwrap();
            let plain = decompress(encoding, &packed, 1003).unwrap();
            assert_eq!(plain.unwrap(), parts.concat());
            assert_eq!(decompress(encoding, &packed, 1002).unwrap(), None);
            assert!(decompress("br", &packed, 1003).is_err());
            assert!(decompress(encoding, b"no", 1003).is_err());
        }
    }
}

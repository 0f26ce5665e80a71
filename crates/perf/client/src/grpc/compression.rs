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
    /// The name in `grpc-encoding`; `None` where the header is left out.
    pub(super) fn encoding(self) -> Option<&'static str> {
        match self {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Deflate => Some("deflate"),
        }
    }
}

/// The parts, one after another, as one compressed message.
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

/// `encoding`: of the response's `grpc-encoding`.
pub(super) fn decompress(encoding: &str, message: &[u8]) -> io::Result<Bytes> {
    let mut plain = Vec::new();
    match encoding {
        "gzip" => MultiGzDecoder::new(message).read_to_end(&mut plain)?,
        "deflate" => ZlibDecoder::new(message).read_to_end(&mut plain)?,
        _ => return Err(io::Error::other(format!("unknown encoding '{encoding}'"))),
    };
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_there_and_back() {
        let (one, two) = ([7u8; 1000], *b"end");
        for compression in [Compression::Gzip, Compression::Deflate] {
            let parts = [&one[..], &two[..]];
            let packed = compress(compression, parts.into_iter()).unwrap();
            assert!(packed.len() < 100, "{compression:?} {}", packed.len());
            let plain = decompress(compression.encoding().unwrap(), &packed).unwrap();
            assert_eq!(plain, parts.concat());
            assert!(decompress("br", &packed).is_err());
            assert!(decompress(compression.encoding().unwrap(), b"no").is_err());
        }
    }
}

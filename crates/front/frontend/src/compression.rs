//! Compressed content of both protocols: gzip and deflate, with a bound on how far it may grow.

use std::io::{self, BufRead, Read, Write};

use bytes::Bytes;
use flate2::{
    Compression,
    bufread::{GzDecoder, ZlibDecoder},
    write::{GzEncoder, ZlibEncoder},
};

use crate::heavy_work::HeavyWork;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionFormat {
    /// Deflate in the zlib format.
    Deflate,
    /// Gzip with one member.
    Gzip,
}

galatea_types::names! {
    /// Returns the name of the format in the headers of both protocols.
    pub CompressionFormat::name { Deflate = "deflate", Gzip = "gzip" }
}

/// The size in bytes from which compression runs on another thread.
const LONG: usize = 8 << 10;
/// The number of bytes that are decompressed at a time.
const PIECE: usize = 64 << 10;
/// Content may grow to this size in any case, and beyond it to `MAX_GROWTH` times its compressed size.
const FREE_GROWTH: usize = 16 << 20;
const MAX_GROWTH: usize = 100;

/// The reason why content cannot be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError<E> {
    /// The content is damaged or ends early.
    #[error(transparent)]
    Damaged(io::Error),
    /// The content grows far more than useful content does.
    #[error("grows to more than {most} bytes, {growth} times its size, when it is decompressed")]
    Grows {
        /// The most bytes that the content may grow to.
        most: usize,
        /// The most growth, as a multiple of the compressed size.
        growth: usize,
    },
    /// The receiver of the content refused a piece.
    #[error("the content is not taken")]
    NotTaken(E),
}

impl CompressionFormat {
    /// Returns the format with this name in the headers of both protocols.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().as_bytes() == name)
    }

    /// Decompresses `compressed`, which is `length` bytes long, and gives the pieces to `take`. Returns `true` if the
    /// content ends with the input; bytes after it are not read.
    pub fn decompress<E>(
        self,
        compressed: impl BufRead,
        length: usize,
        take: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<bool, DecompressError<E>> {
        let mut rest = match self {
            Self::Gzip => {
                let mut decoder = GzDecoder::new(compressed);
                read_all(&mut decoder, length, take)?;
                decoder.into_inner()
            }
            Self::Deflate => {
                let mut decoder = ZlibDecoder::new(compressed);
                read_all(&mut decoder, length, take)?;
                decoder.into_inner()
            }
        };
        rest.fill_buf().map(<[u8]>::is_empty).map_err(DecompressError::Damaged)
    }

    /// Compresses the pieces as one content. From 8 KiB on a thread of the pool does it, because it takes ten times as
    /// long as other work on as many bytes.
    pub async fn compress_at(self, pool: &HeavyWork, pieces: Vec<Bytes>) -> io::Result<Vec<u8>> {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let work = move || self.compress(&pieces);
        if length < LONG {
            return work();
        }
        pool.run(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Compresses the pieces as one content.
    pub fn compress(self, pieces: &[Bytes]) -> io::Result<Vec<u8>> {
        let level = Compression::default();
        match self {
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                pieces.iter().try_for_each(|piece| encoder.write_all(piece))?;
                encoder.finish()
            }
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), level);
                pieces.iter().try_for_each(|piece| encoder.write_all(piece))?;
                encoder.finish()
            }
        }
    }
}

fn read_all<E>(
    from: &mut impl Read,
    compressed: usize,
    mut take: impl FnMut(Bytes) -> Result<(), E>,
) -> Result<(), DecompressError<E>> {
    let most = compressed.saturating_mul(MAX_GROWTH).max(FREE_GROWTH);
    let mut total = 0usize;
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = from.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        read.map_err(DecompressError::Damaged)?;
        if piece.is_empty() {
            return Ok(());
        }
        total = total.saturating_add(piece.len());
        if total > most {
            return Err(DecompressError::Grows { most, growth: MAX_GROWTH });
        }
        take(Bytes::from(piece)).map_err(DecompressError::NotTaken)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompressed(
        format: CompressionFormat,
        bytes: &[u8],
        limit: usize,
    ) -> Result<(Vec<u8>, bool), DecompressError<usize>> {
        let mut content = Vec::new();
        let is_all = format.decompress(bytes, bytes.len(), |piece| {
            content.extend_from_slice(&piece);
            if content.len() > limit { Err(content.len()) } else { Ok(()) }
        })?;
        Ok((content, is_all))
    }

    #[test]
    fn both_formats_round_trip_and_trailing_bytes_are_refused() {
        let content: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
        let pieces = [Bytes::copy_from_slice(&content[..7]), Bytes::copy_from_slice(&content[7..])];
        for format in [CompressionFormat::Deflate, CompressionFormat::Gzip] {
            let mut bytes = format.compress(&pieces).expect("in memory");
            let found = decompressed(format, &bytes, usize::MAX).expect("whole");
            assert!(found == (content.clone(), true));
            assert!(matches!(
                decompressed(format, &bytes, PIECE),
                Err(DecompressError::NotTaken(size)) if size == 2 * PIECE
            ));
            bytes.push(b'x');
            assert!(!decompressed(format, &bytes, usize::MAX).expect("whole").1);
            for cut in [0, 1, 9, bytes.len() / 2, bytes.len() - 2] {
                let error = decompressed(format, &bytes[..cut], usize::MAX).expect_err("damaged");
                assert!(matches!(error, DecompressError::Damaged(_)), "{format:?} {cut}: {error}");
            }
        }
    }

    #[test]
    fn decompressed_size_is_limited() {
        let zeros = Bytes::from(vec![0; FREE_GROWTH + PIECE]);
        for format in [CompressionFormat::Deflate, CompressionFormat::Gzip] {
            let bomb = format.compress(std::slice::from_ref(&zeros)).expect("in memory");
            let error = decompressed(format, &bomb, usize::MAX).expect_err("too much growth");
            assert!(matches!(error, DecompressError::Grows { most: FREE_GROWTH, .. }), "{error}");
            let fine = format.compress(&[zeros.slice(PIECE..)]).expect("in memory");
            assert_eq!(decompressed(format, &fine, usize::MAX).expect("fits").0.len(), FREE_GROWTH);
        }
    }
}

//! The decoder of a request body, which separates the content from the framing around it.

use crate::request_head::{Framing, MAX_HEAD, MAX_HEADERS};

/// The most bytes of extensions, and of white space before them, in one body.
const MAX_EXTENSIONS: usize = 16 << 10;
/// The most digits of one length, leading zeros included: as many as the longest length has.
const MAX_DIGITS: u32 = u64::BITS / 4;

/// A fault in the framing of a body. Nothing after it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// A chunk does not begin with its length in hexadecimal digits.
    #[error("invalid chunk size")]
    Size,
    /// A length that no chunk has, or one with more digits than any needs.
    #[error("invalid chunk size: overflow")]
    SizeOverflow,
    /// An extension contains a line end.
    #[error("invalid chunk extension contains newline")]
    ExtensionLine,
    /// Too many bytes of extensions.
    #[error("chunk extensions over limit")]
    Extensions,
    /// A chunk is not followed by a line end.
    #[error("invalid chunk end")]
    ChunkEnd,
    /// The lines after the last chunk are not headers.
    #[error("invalid chunk trailers")]
    Trailers,
    /// Too many or too long headers follow the last chunk.
    #[error("chunk trailers over limit")]
    TrailersLimit,
}

/// The parts at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes that are not content.
    pub skipped: usize,
    /// Bytes of content after them.
    pub data: usize,
}

/// Separates the content of one body from the framing, however the bytes are split.
#[derive(Debug)]
pub struct BodyDecoder(Kind);

#[derive(Debug)]
enum Kind {
    Length(u64),
    Chunked(Chunked),
}

#[derive(Debug, Default)]
struct Chunked {
    state: State,
    /// Bytes left of the chunk, or the part of its length that was read.
    left: u64,
    /// Digits read of the current length.
    digits: u32,
    extensions: usize,
    chunks: u32,
    trailers: Vec<u8>,
    trailer_lines: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Size,
    SizeSpace,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    TrailerLf,
    EndCr,
    EndLf,
    End,
}

impl BodyDecoder {
    /// Returns a decoder for a body with this framing.
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(length) => Kind::Length(length),
            Framing::Chunked => Kind::Chunked(Chunked::default()),
        })
    }

    /// Returns `true` once the whole body was read.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Length(left) => *left == 0,
            Kind::Chunked(chunked) => chunked.state == State::End,
        }
    }

    /// Returns the number of bytes left, if known.
    pub fn left(&self) -> Option<u64> {
        match &self.0 {
            Kind::Length(left) => Some(*left),
            Kind::Chunked(_) => self.is_finished().then_some(0),
        }
    }

    /// Skips `count` bytes of content, of a known length, that were read elsewhere.
    pub fn skip(&mut self, count: usize) {
        if let Kind::Length(left) = &mut self.0 {
            *left = left.saturating_sub(count as u64);
        }
    }

    /// Returns the number of non-empty chunks that have begun.
    pub fn chunks(&self) -> u32 {
        match &self.0 {
            Kind::Length(_) => 0,
            Kind::Chunked(chunked) => chunked.chunks,
        }
    }

    /// Reads the next bytes, up to the end of a piece of content or of `bytes`. The bytes of the step are consumed; the
    /// rest belongs to the next step.
    ///
    /// # Errors
    /// When these are not the bytes of a body. There is no next step then.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, BodyFault> {
        match &mut self.0 {
            Kind::Length(left) => {
                let data = at_most(*left, bytes.len());
                *left -= data as u64;
                Ok(Step { skipped: 0, data })
            }
            Kind::Chunked(chunked) => chunked.step(bytes),
        }
    }
}

fn at_most(left: u64, bytes: usize) -> usize {
    usize::try_from(left).map_or(bytes, |left| left.min(bytes))
}

impl Chunked {
    fn step(&mut self, bytes: &[u8]) -> Result<Step, BodyFault> {
        let mut skipped = 0;
        while let Some(&byte) = bytes.get(skipped) {
            match self.state {
                State::End => break,
                State::Data => {
                    let data = at_most(self.left, bytes.len() - skipped);
                    self.left -= data as u64;
                    if self.left == 0 {
                        self.state = State::DataCr;
                    }
                    return Ok(Step { skipped, data });
                }
                _ => self.state = self.after(byte)?,
            }
            skipped += 1;
        }
        Ok(Step { skipped, data: 0 })
    }

    /// Returns the state after a byte that is not content.
    fn after(&mut self, byte: u8) -> Result<State, BodyFault> {
        match (self.state, byte) {
            (State::Start | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.add_digit(byte)
            }
            (State::Size | State::SizeSpace, b' ' | b'\t') => {
                self.add_extension(byte).map(|_| State::SizeSpace)
            }
            (State::Size | State::SizeSpace, b';') => Ok(State::Extension),
            (State::Size | State::SizeSpace | State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, _) => self.add_extension(byte),
            (State::SizeLf, b'\n') if self.left == 0 => Ok(State::EndCr),
            (State::SizeLf, b'\n') => {
                self.chunks = self.chunks.saturating_add(1);
                Ok(State::Data)
            }
            (State::Start | State::Size | State::SizeSpace | State::SizeLf, _) => {
                Err(BodyFault::Size)
            }
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => {
                self.digits = 0;
                Ok(State::Start)
            }
            (State::EndCr | State::EndLf | State::Trailer | State::TrailerLf, _) => {
                self.after_last_chunk(byte)
            }
            (State::DataCr | State::DataLf | State::Data | State::End, _) => {
                Err(BodyFault::ChunkEnd)
            }
        }
    }

    fn add_digit(&mut self, byte: u8) -> Result<State, BodyFault> {
        self.digits += 1;
        if self.digits > MAX_DIGITS {
            return Err(BodyFault::SizeOverflow);
        }
        let digit = char::from(byte).to_digit(16).unwrap_or(0);
        let size = self.left.checked_mul(16).ok_or(BodyFault::SizeOverflow)?;
        self.left = size.checked_add(digit.into()).ok_or(BodyFault::SizeOverflow)?;
        Ok(State::Size)
    }

    fn add_extension(&mut self, byte: u8) -> Result<State, BodyFault> {
        if byte == b'\n' {
            return Err(BodyFault::ExtensionLine);
        }
        self.extensions += 1;
        match self.extensions >= MAX_EXTENSIONS {
            true => Err(BodyFault::Extensions),
            false => Ok(State::Extension),
        }
    }

    /// Reads the headers that may follow the last chunk. They must be headers, and are ignored.
    fn after_last_chunk(&mut self, byte: u8) -> Result<State, BodyFault> {
        if self.state == State::EndLf && byte != b'\n' {
            return Err(BodyFault::ChunkEnd);
        }
        let is_first = self.state == State::EndCr && byte != b'\r';
        if is_first || !self.trailers.is_empty() {
            self.trailers.push(byte);
            if self.trailers.len() >= MAX_HEAD {
                return Err(BodyFault::TrailersLimit);
            }
        }
        match (self.state, byte) {
            (State::EndCr, b'\r') => Ok(State::EndLf),
            (State::EndLf, _) => self.end(),
            (State::TrailerLf, b'\n') if self.trailer_lines >= MAX_HEADERS => {
                Err(BodyFault::TrailersLimit)
            }
            (State::TrailerLf, b'\n') => {
                self.trailer_lines += 1;
                Ok(State::EndCr)
            }
            // A line must end with both: a reader that takes the line feed alone for an end would see other trailers, or none.
            (State::TrailerLf, _) | (_, b'\n') => Err(BodyFault::Trailers),
            (_, b'\r') => Ok(State::TrailerLf),
            _ => Ok(State::Trailer),
        }
    }

    fn end(&mut self) -> Result<State, BodyFault> {
        if self.trailer_lines > 0 {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            match httparse::parse_headers(&self.trailers, &mut headers) {
                Ok(httparse::Status::Complete((length, _))) if length == self.trailers.len() => {}
                _ => return Err(BodyFault::Trailers),
            }
        }
        self.trailers = Vec::new();
        Ok(State::End)
    }
}

//! The body of a request, told apart from what is between its parts and behind it.

use crate::request_head::{Framing, MAX_HEAD, MAX_HEADERS};

/// Most bytes of extensions, and of white space before them, in one body.
const MAX_EXTENSIONS: usize = 16 << 10;
/// Most digits of one length, leading zeros among them: as many as the longest length has.
const MAX_DIGITS: u32 = u64::BITS / 4;

/// What is wrong with the frame of a body. Nothing behind it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// A chunk does not begin with its length in hexadecimal digits.
    #[error("invalid chunk size")]
    Size,
    /// A length that no chunk has, or of more digits than any needs.
    #[error("invalid chunk size: overflow")]
    SizeOverflow,
    /// An extension has a line end in it.
    #[error("invalid chunk extension contains newline")]
    ExtensionLine,
    /// Extensions of too many bytes.
    #[error("chunk extensions over limit")]
    Extensions,
    /// A chunk is not followed by a line end.
    #[error("invalid chunk end")]
    ChunkEnd,
    /// What follows the last chunk are no headers.
    #[error("invalid chunk trailers")]
    Trailers,
    /// Too many headers follow the last chunk, or too long ones.
    #[error("chunk trailers over limit")]
    TrailersLimit,
}

/// What some bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes that are not of the content.
    pub skipped: usize,
    /// Bytes of the content behind them.
    pub data: usize,
}

/// Tells the content of one body from what is around it, however it is cut.
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
    /// Of the chunk, or the part of its length that was read.
    left: u64,
    /// Of the length that is being read.
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
    /// Of a body that ends so.
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(length) => Kind::Length(length),
            Framing::Chunked => Kind::Chunked(Chunked::default()),
        })
    }

    /// Whether all of it was seen.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Length(left) => *left == 0,
            Kind::Chunked(chunked) => chunked.state == State::End,
        }
    }

    /// How much is to come, where that is known.
    pub fn left(&self) -> Option<u64> {
        match &self.0 {
            Kind::Length(left) => Some(*left),
            Kind::Chunked(_) => self.is_finished().then_some(0),
        }
    }

    /// So many bytes of the content, of a length that was announced, are taken elsewhere.
    pub fn skip(&mut self, count: usize) {
        if let Kind::Length(left) = &mut self.0 {
            *left = left.saturating_sub(count as u64);
        }
    }

    /// How many chunks that hold something have begun.
    pub fn chunks(&self) -> u32 {
        match &self.0 {
            Kind::Length(_) => 0,
            Kind::Chunked(chunked) => chunked.chunks,
        }
    }

    /// Looks at what comes next: up to the end of a piece of the content, or to the end of `bytes`. What the step spans is
    /// done with, and the rest is for the next one.
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

    /// The state after a byte that is none of the content.
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

    /// Headers may follow the last chunk. They are read to their end, must be headers, and mean nothing.
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
            // A line ends with both: what took the line feed alone for an end would read other trailers, or none.
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

//! Parser of HTTP/1.1 responses, without any I/O.

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use httparse::Status;

/// Longest head and longest line within a chunked body.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 64;
/// Most bytes of an error's body that are kept.
const MAX_ERROR_BODY: usize = 1 << 20;

/// A response that does not follow the protocol.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("{0}")]
    Head(#[from] httparse::Error),
    #[error("its head is longer than {MAX_HEAD} bytes")]
    LongHead,
    #[error("its Content-Length is '{0}'")]
    ContentLength(String),
    #[error("its Transfer-Encoding is '{0}'")]
    TransferEncoding(String),
    #[error("a chunk does not begin with its size")]
    ChunkSize,
    #[error("a chunk is longer than its header has it")]
    ChunkEnd,
    #[error("it ends early")]
    Truncated,
}

/// A whole response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub status: u16,
    /// Value of `Inference-Header-Content-Length`.
    pub header_length: Option<usize>,
    pub keep_alive: bool,
    /// The body; empty if the parser does not keep it and the status is 200.
    pub body: Bytes,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParseProgress {
    Done(Response),
    /// Number of bytes known to be missing, at least 1.
    More(usize),
}

pub(crate) struct ResponseParser {
    keep_success: bool,
    state: State,
    head: Head,
    body: BytesMut,
}

#[derive(Clone, Copy, Default)]
struct Head {
    status: u16,
    header_length: Option<usize>,
    keep_alive: bool,
}

#[derive(Clone, Copy)]
enum State {
    Head,
    /// Number of bytes of the body that are still to be taken from the buffer.
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    UntilClose,
}

impl ResponseParser {
    /// `keep_success`: keep the body of a response with status 200. Other bodies are always kept, up to a bound.
    pub fn new(keep_success: bool) -> Self {
        Self { keep_success, state: State::Head, head: Head::default(), body: BytesMut::new() }
    }

    /// Takes bytes from the buffer. After `Done` the parser must not be used again.
    pub fn advance(&mut self, buffer: &mut BytesMut) -> Result<ParseProgress, ParseError> {
        loop {
            match self.state {
                State::Head => match parse_head(buffer)? {
                    None => return Ok(ParseProgress::More(1)),
                    // Another response follows an interim one.
                    Some((length, head, _)) if head.status / 100 == 1 => buffer.advance(length),
                    Some((length, head, state)) => {
                        buffer.advance(length);
                        (self.head, self.state) = (head, state);
                    }
                },
                State::Length(missing) => return Ok(self.sized(buffer, missing)),
                State::UntilClose => {
                    self.take(buffer, buffer.len());
                    return Ok(ParseProgress::More(1));
                }
                _ => match self.chunked(buffer)? {
                    Some(progress) => return Ok(progress),
                    None => continue,
                },
            }
        }
    }

    /// Returns the response that the end of the connection completes.
    pub fn end(&mut self, buffer: &mut BytesMut) -> Result<Response, ParseError> {
        match self.state {
            State::UntilClose => {
                self.take(buffer, buffer.len());
                Ok(self.response())
            }
            _ => Err(ParseError::Truncated),
        }
    }

    /// Returns the body bytes that arrived since the last call, for a response with status 200.
    pub fn take_success(&mut self) -> Option<BytesMut> {
        (self.head.status == 200 && !self.body.is_empty()).then(|| self.body.split())
    }

    fn keeps(&self) -> bool {
        self.keep_success || self.head.status != 200
    }

    fn sized(&mut self, buffer: &mut BytesMut, missing: u64) -> ParseProgress {
        let available = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
        if available >= missing {
            // Not above `buffer.len()`, which is a `usize`.
            self.take(buffer, usize::try_from(missing).unwrap_or(usize::MAX));
            return ParseProgress::Done(self.response());
        }
        if self.keep_success {
            // A body that is kept stays in the buffer until it is complete, so that it need not be copied.
            return ParseProgress::More(usize::try_from(missing - available).unwrap_or(usize::MAX));
        }
        let rest = missing - available;
        self.take(buffer, buffer.len());
        self.state = State::Length(rest);
        ParseProgress::More(usize::try_from(rest).unwrap_or(usize::MAX))
    }

    /// Does one step within a chunked body; `None`: the caller makes the next one.
    fn chunked(&mut self, buffer: &mut BytesMut) -> Result<Option<ParseProgress>, ParseError> {
        match self.state {
            State::ChunkSize => match httparse::parse_chunk_size(buffer) {
                Ok(Status::Complete((length, size))) => {
                    buffer.advance(length);
                    self.state = if size == 0 { State::Trailer } else { State::ChunkData(size) };
                }
                Ok(Status::Partial) if buffer.len() <= MAX_HEAD => {
                    return Ok(Some(ParseProgress::More(1)));
                }
                _ => return Err(ParseError::ChunkSize),
            },
            State::ChunkData(missing) => {
                let available = u64::try_from(buffer.len()).unwrap_or(u64::MAX).min(missing);
                self.take(buffer, usize::try_from(available).unwrap_or(usize::MAX));
                if available < missing {
                    self.state = State::ChunkData(missing - available);
                    return Ok(Some(ParseProgress::More(1)));
                }
                self.state = State::ChunkEnd;
            }
            State::ChunkEnd => match buffer.get(..2) {
                None => return Ok(Some(ParseProgress::More(1))),
                Some(b"\r\n") => {
                    buffer.advance(2);
                    self.state = State::ChunkSize;
                }
                Some(_) => return Err(ParseError::ChunkEnd),
            },
            _ => return self.trailer(buffer).map(Some),
        }
        Ok(None)
    }

    /// Skips header fields after a chunked body, up to an empty line.
    fn trailer(&mut self, buffer: &mut BytesMut) -> Result<ParseProgress, ParseError> {
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let is_last = matches!(buffer.get(..end), Some(b"" | b"\r"));
            buffer.advance(end + 1);
            if is_last {
                return Ok(ParseProgress::Done(self.response()));
            }
        }
        if buffer.len() > MAX_HEAD { Err(ParseError::LongHead) } else { Ok(ParseProgress::More(1)) }
    }

    fn take(&mut self, buffer: &mut BytesMut, length: usize) {
        let length = length.min(buffer.len());
        if !self.keeps() {
            buffer.advance(length);
        } else if self.body.is_empty() {
            self.body = buffer.split_to(length);
        } else if self.keep_success || self.body.len() + length <= MAX_ERROR_BODY {
            self.body.extend_from_slice(&buffer.split_to(length));
        } else {
            buffer.advance(length);
        }
    }

    fn response(&mut self) -> Response {
        let Head { status, header_length, keep_alive } = self.head;
        Response { status, header_length, keep_alive, body: self.body.split().freeze() }
    }
}

fn parse_head(buffer: &[u8]) -> Result<Option<(usize, Head, State)>, ParseError> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        buffer,
        &mut headers,
    )?;
    let length = match parsed {
        Status::Complete(length) => length,
        Status::Partial if buffer.len() > MAX_HEAD => return Err(ParseError::LongHead),
        Status::Partial => return Ok(None),
    };
    let mut head = Head {
        status: response.code.unwrap_or_default(),
        header_length: None,
        keep_alive: response.version == Some(1),
    };
    let mut content_length = None;
    let mut chunked = false;
    for header in &*response.headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            content_length = Some(agreed_length(content_length, header.value)?);
        } else if header.name.eq_ignore_ascii_case("inference-header-content-length") {
            head.header_length = Some(number(header.value)?);
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.keep_alive = keeps_alive(header.value, head.keep_alive);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = is_chunked(header.value)?;
        }
    }
    let state = match content_length {
        _ if chunked => State::ChunkSize,
        _ if matches!(head.status, 204 | 304) => State::Length(0),
        Some(length) => State::Length(length),
        None => {
            head.keep_alive = false;
            State::UntilClose
        }
    };
    Ok(Some((length, head, state)))
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Result<T, ParseError> {
    let text = std::str::from_utf8(value).ok().map(str::trim);
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| ParseError::ContentLength(shown(value)))
}

fn agreed_length(before: Option<u64>, value: &[u8]) -> Result<u64, ParseError> {
    let length = number(value)?;
    match before {
        Some(other) if other != length => Err(ParseError::ContentLength(shown(value))),
        _ => Ok(length),
    }
}

fn keeps_alive(value: &[u8], otherwise: bool) -> bool {
    let options = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    options.fold(otherwise, |kept, option| {
        (kept || option.eq_ignore_ascii_case(b"keep-alive"))
            && !option.eq_ignore_ascii_case(b"close")
    })
}

fn is_chunked(value: &[u8]) -> Result<bool, ParseError> {
    match value.trim_ascii() {
        value if value.eq_ignore_ascii_case(b"chunked") => Ok(true),
        value if value.eq_ignore_ascii_case(b"identity") => Ok(false),
        value => Err(ParseError::TransferEncoding(shown(value))),
    }
}

fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests;

//! The head of a request.

use std::mem::MaybeUninit;

use http::Method;

use crate::{HeadError, request_target::Target};

/// The longest head, in bytes.
pub const MAX_HEAD: usize = 32 << 10;
/// The most headers in a head.
pub const MAX_HEADERS: usize = 100;
/// Longer lengths are not distinguished from a body that never ends.
const MAX_LENGTH: u64 = u64::MAX - 2;
/// The first bytes of an HTTP/2 client.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0, without chunks. A connection ends with its first response unless the client asks for more.
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

/// The framing of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body has this many bytes; 0 without an announced length.
    Length(u64),
    /// The body ends with its last chunk.
    Chunked,
}

impl Framing {
    /// Returns the length of the body, if it is known before the body is read.
    pub fn length(self) -> Option<u64> {
        match self {
            Self::Length(length) => Some(length),
            Self::Chunked => None,
        }
    }
}

/// A range in the text of a head. A head is never longer than `u16` can express.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u16,
    end: u16,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    name: Span,
    value: Span,
}

/// The head of a request. Header names match in any case, and are kept as they were sent.
///
/// The next head that is [read](Self::read) into it reuses its memory.
#[derive(Debug)]
pub struct RequestHead {
    /// The head as received. A path extracted from a URI is appended, with its query.
    text: Vec<u8>,
    lines: Vec<Line>,
    method: Method,
    path: Span,
    query: Option<Span>,
    version: Version,
    framing: Framing,
    keeps_alive: bool,
    expects_continue: bool,
}

impl Default for RequestHead {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            lines: Vec::new(),
            method: Method::GET,
            path: Span::default(),
            query: None,
            version: Version::Http11,
            framing: Framing::Length(0),
            keeps_alive: true,
            expects_continue: false,
        }
    }
}

impl RequestHead {
    /// Reads the head at the beginning of `bytes` and returns its length, or `None` while it is incomplete. `seen` is
    /// the number of bytes that were there at the last incomplete attempt.
    ///
    /// # Errors
    /// When it is not a head, or is refused. The contents are not to be used then.
    pub fn read(&mut self, bytes: &[u8], seen: usize) -> Result<Option<usize>, HeadError> {
        let length = match seen == 0 || may_be_complete(bytes, seen) {
            true => self.parse(bytes)?,
            false => None,
        };
        match length {
            None if bytes.len() >= MAX_HEAD => Err(HeadError::TooLarge),
            length => Ok(length),
        }
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(bytes, &mut headers) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) if bytes.starts_with(HTTP2_PREFACE) => return Err(HeadError::Http2),
            Err(httparse::Error::Token) if request.method.is_none() => {
                return Err(HeadError::Method);
            }
            Err(httparse::Error::Token) => return Err(HeadError::Target),
            Err(error) => return Err(error.into()),
        };
        let head = bytes.get(..length).filter(|head| head.len() <= MAX_HEAD);
        let head = head.ok_or(HeadError::TooLarge)?;
        check_line_ends(head, &request)?;
        self.text.clear();
        self.text.extend_from_slice(head);
        let method = request.method.unwrap_or_default();
        self.method = Method::from_bytes(method.as_bytes()).map_err(|_| HeadError::Method)?;
        self.version = if request.version == Some(1) { Version::Http11 } else { Version::Http10 };
        self.set_target(head, request.path.unwrap_or_default())?;
        self.set_headers(head, request.headers)?;
        Ok(Some(length))
    }

    fn set_target(&mut self, head: &[u8], text: &str) -> Result<(), HeadError> {
        match Target::parse(text)? {
            Target::Plain { path } => {
                let (path, rest) = text.split_at_checked(path).unwrap_or((text, ""));
                self.path = span_in(head, path.as_bytes())?;
                let query = rest.get(1..).map(|query| span_in(head, query.as_bytes()));
                self.query = query.transpose()?;
            }
            Target::Other(uri) => {
                self.path = self.append(uri.path())?;
                self.query = uri.query().map(|query| self.append(query)).transpose()?;
            }
        }
        Ok(())
    }

    fn append(&mut self, text: &str) -> Result<Span, HeadError> {
        let start = self.text.len();
        self.text.extend_from_slice(text.as_bytes());
        span(start, self.text.len())
    }

    fn set_headers(
        &mut self,
        head: &[u8],
        headers: &[httparse::Header<'_>],
    ) -> Result<(), HeadError> {
        let mut meaning = HeaderMeaning::new(self.version);
        self.lines.clear();
        for header in headers {
            let line = Line {
                name: span_in(head, header.name.as_bytes())?,
                value: span_in(head, header.value)?,
            };
            if meaning.learn(header.name, header.value)? {
                self.lines.push(line);
            }
        }
        if meaning.has_length && meaning.is_encoded {
            let Self { text, lines, .. } = self;
            lines.retain(|line| !is_named(bytes_of(text, line.name), CONTENT_LENGTH));
        }
        self.framing = meaning.framing()?;
        if self.version == Version::Http11 && !meaning.has_host {
            return Err(HeadError::Host);
        }
        // A body with two lengths is the last of its connection, because the client may mean the next bytes otherwise.
        self.keeps_alive = meaning.keeps_alive && !(meaning.is_encoded && meaning.has_length);
        self.expects_continue = meaning.expects_continue && self.version == Version::Http11;
        Ok(())
    }

    /// Returns the method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path as it was sent, without the query.
    pub fn path(&self) -> &str {
        text_of(&self.text, self.path)
    }

    /// Returns the part after the question mark.
    pub fn query(&self) -> Option<&str> {
        self.query.map(|query| text_of(&self.text, query))
    }

    /// Returns the HTTP version of the request.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the framing of the body.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns `true` if the client wants to send another request on the connection.
    pub fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Returns `true` if the client waits for `100 Continue` before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Returns the value of the first header with this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let is_wanted = |line: &&Line| is_named(bytes_of(&self.text, line.name), name);
        self.lines.iter().find(is_wanted).map(|line| bytes_of(&self.text, line.value))
    }

    /// Returns the values of all headers with this name.
    pub fn get_all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h [u8]> {
        let named =
            self.lines.iter().filter(move |line| is_named(bytes_of(&self.text, line.name), name));
        named.map(|line| bytes_of(&self.text, line.value))
    }

    /// Returns the names, as they were sent, and the values of all headers in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let text = &self.text;
        self.lines.iter().map(|line| (text_of(text, line.name), bytes_of(text, line.value)))
    }
}

const CONTENT_LENGTH: &str = "content-length";

/// The statements of the headers about the body and the connection.
#[derive(Default)]
struct HeaderMeaning {
    version: Version,
    has_host: bool,
    has_length: bool,
    length: Option<u64>,
    is_encoded: bool,
    is_chunked: bool,
    /// The chunks contain another coding.
    has_unknown_coding: bool,
    asks_to_close: bool,
    keeps_alive: bool,
    expects_continue: bool,
}

impl HeaderMeaning {
    fn new(version: Version) -> Self {
        Self { version, keeps_alive: version == Version::Http11, ..Self::default() }
    }

    /// Reads the next header. Returns `false` if it repeats a known length, or states one for an encoded body.
    fn learn(&mut self, name: &str, value: &[u8]) -> Result<bool, HeadError> {
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => {
                let is_second = std::mem::replace(&mut self.has_host, true);
                if is_second || !is_host(value) {
                    return Err(HeadError::Host);
                }
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            10 if name.eq_ignore_ascii_case("connection") => self.learn_connection(value),
            14 if name.eq_ignore_ascii_case(CONTENT_LENGTH) => return self.learn_length(value),
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.version == Version::Http10 {
                    return Err(HeadError::UnexpectedTransferEncoding);
                }
                self.learn_codings(value)?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Reads the codings of the body in their order, from one header or several. Chunks come once and last.
    fn learn_codings(&mut self, value: &[u8]) -> Result<(), HeadError> {
        self.is_encoded = true;
        let text = visible_text(value).ok_or(HeadError::TransferEncoding)?;
        for coding in text.split(',').map(str::trim).filter(|coding| !coding.is_empty()) {
            if self.is_chunked {
                return Err(HeadError::TransferEncoding);
            }
            match coding.eq_ignore_ascii_case("chunked") {
                true => self.is_chunked = true,
                false => self.has_unknown_coding = true,
            }
        }
        Ok(())
    }

    fn learn_length(&mut self, value: &[u8]) -> Result<bool, HeadError> {
        self.has_length = true;
        if self.is_encoded {
            return Ok(false);
        }
        let length = digits(value).ok_or(HeadError::ContentLength)?;
        match self.length {
            Some(known) if known != length => Err(HeadError::ContentLength),
            Some(_) => Ok(false),
            None if length > MAX_LENGTH => Err(HeadError::TooLarge),
            None => {
                self.length = Some(length);
                Ok(true)
            }
        }
    }

    /// No later header undoes a request to close.
    fn learn_connection(&mut self, value: &[u8]) {
        self.asks_to_close |= has_token(value, "close");
        self.keeps_alive =
            !self.asks_to_close && (self.keeps_alive || has_token(value, "keep-alive"));
    }

    fn framing(&self) -> Result<Framing, HeadError> {
        match (self.is_encoded, self.is_chunked) {
            (true, true) if self.has_unknown_coding => Err(HeadError::UnknownCoding),
            (true, true) => Ok(Framing::Chunked),
            (true, false) => Err(HeadError::TransferEncoding),
            (false, _) => Ok(Framing::Length(self.length.unwrap_or(0))),
        }
    }
}

/// Returns `true` for a host as in a URI, with or without a port; empty if the target has none.
fn is_host(value: &[u8]) -> bool {
    let is_address = value.starts_with(b"[");
    let end = match is_address {
        true => memchr::memchr(b']', value).map(|at| at + 1),
        false => Some(memchr::memchr(b':', value).unwrap_or(value.len())),
    };
    let Some((host, port)) = end.and_then(|end| value.split_at_checked(end)) else { return false };
    let is_of_host = |byte: &u8| match byte {
        b'[' | b']' | b':' => is_address,
        b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*'
        | b'+' | b',' | b';' | b'=' => true,
        byte => byte.is_ascii_alphanumeric(),
    };
    let is_port = match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    host.iter().all(is_of_host) && is_port
}

/// Checks that each line of a head ends with both bytes of a line end. The parser takes a lone `\n` as well; other servers in
/// front of this one may not, and would then see another request.
///
/// Lines end before a method, before a name, and at the end: nothing else of a parsed head contains `\n`.
fn check_line_ends(head: &[u8], request: &httparse::Request<'_, '_>) -> Result<(), HeadError> {
    let before = |part: &str| {
        let start = part.as_ptr().addr().wrapping_sub(head.as_ptr().addr());
        head.get(..start).unwrap_or_default()
    };
    let is_empty_lines = |text: &[u8]| text.chunks(2).all(|line| line == b"\r\n");
    let is_good = request.method.is_some_and(|method| is_empty_lines(before(method)))
        && request.headers.iter().all(|header| before(header.name).ends_with(b"\r\n"))
        && head.ends_with(b"\r\n\r\n");
    if is_good { Ok(()) } else { Err(HeadError::LineEnd) }
}

fn has_token(value: &[u8], token: &str) -> bool {
    visible_text(value)
        .is_some_and(|text| text.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
}

/// Parses digits alone: no sign, no list.
fn digits(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns a value of visible ASCII, spaces and tabs; `None` if it has any other byte.
pub fn visible_text(value: &[u8]) -> Option<&str> {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    value.iter().all(is_visible).then(|| std::str::from_utf8(value).ok()).flatten()
}

/// Returns `true` if the bytes after the first `seen` ones may contain the end of the head. A slow client must not
/// cause a full parse with each byte.
fn may_be_complete(bytes: &[u8], seen: usize) -> bool {
    let new = bytes.get(seen.saturating_sub(3)..).unwrap_or_default();
    memchr::memchr_iter(b'\n', new).any(|at| {
        let behind = new.get(at + 1..).unwrap_or_default();
        behind.starts_with(b"\n") || behind.starts_with(b"\r\n")
    })
}

fn is_named(name: &[u8], wanted: &str) -> bool {
    name.len() == wanted.len() && name.eq_ignore_ascii_case(wanted.as_bytes())
}

/// Returns the range of a part of the head.
fn span_in(head: &[u8], part: &[u8]) -> Result<Span, HeadError> {
    let start = part.as_ptr().addr().wrapping_sub(head.as_ptr().addr());
    span(start, start.wrapping_add(part.len()))
}

fn span(start: usize, end: usize) -> Result<Span, HeadError> {
    match (u16::try_from(start), u16::try_from(end)) {
        (Ok(start), Ok(end)) => Ok(Span { start, end }),
        // An empty value may be represented by any empty text.
        _ if start == end => Ok(Span::default()),
        _ => Err(HeadError::TooLarge),
    }
}

fn bytes_of(text: &[u8], span: Span) -> &[u8] {
    text.get(usize::from(span.start)..usize::from(span.end)).unwrap_or_default()
}

/// The parser has checked that it is text.
fn text_of(text: &[u8], span: Span) -> &str {
    std::str::from_utf8(bytes_of(text, span)).unwrap_or_default()
}

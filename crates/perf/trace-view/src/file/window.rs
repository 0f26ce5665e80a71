//! A part of a file in memory: the objects of a file are parsed in it, one after another.

use std::io::{self, Read};

use memchr::{memchr_iter, memmem::Finder};
use serde_json::Deserializer;

use super::object::TraceObject;

/// A longer object is refused.
const MOST_OBJECT: usize = 256 << 20;
/// Each object begins with this key.
const FIRST_KEY: &[u8] = b"\"id\"";
/// Most blanks between the brace and the first key.
const MOST_BLANKS: usize = 64;
/// The next object may begin this many bytes before the fault of the one that is broken.
const BEFORE_FAULT: usize = 8;

/// The bytes of a file from the next object on, as far as they were read.
pub(crate) struct Window<R> {
    reader: R,
    /// Bytes that are read at once.
    chunk: usize,
    bytes: Vec<u8>,
    /// Index of the next byte to parse.
    at: usize,
    /// The offset of `bytes` in the file.
    before: u64,
    is_at_end: bool,
    /// The last separator ends the array.
    is_closed: bool,
    first_key: Finder<'static>,
}

/// The fault of an object.
pub(crate) enum ObjectFault {
    /// The file ends within the object.
    Cut,
    /// The object is no object of a trace; `next` is the index from which the next one is looked for.
    Broken { text: String, next: usize },
}

impl<R: Read> Window<R> {
    pub fn new(reader: R, chunk: usize) -> Self {
        let first_key = Finder::new(FIRST_KEY);
        Self {
            reader,
            chunk,
            bytes: Vec::new(),
            at: 0,
            before: 0,
            is_at_end: false,
            is_closed: false,
            first_key,
        }
    }

    /// Returns the offset of the next byte in the file.
    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Returns true if the array is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the next byte that separates no objects; `None` at the end of the file.
    pub fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(&byte @ (b'[' | b',' | b']')) => {
                    self.is_closed = byte == b']';
                    self.at += 1;
                }
                Some(&byte) => return Ok(Some(byte)),
                None if self.is_at_end => return Ok(None),
                None => self.fill()?,
            }
        }
    }

    /// Parses the object that begins here, and passes it to `take`.
    pub fn object(
        &mut self,
        take: &mut impl FnMut(TraceObject<'_>),
    ) -> io::Result<Result<(), ObjectFault>> {
        self.is_closed = false;
        loop {
            let here = &self.bytes[self.at..];
            let mut objects = Deserializer::from_slice(here).into_iter::<TraceObject<'_>>();
            let fault = match objects.next() {
                Some(Ok(object)) => {
                    take(object);
                    self.at += objects.byte_offset();
                    return Ok(Ok(()));
                }
                Some(Err(error)) if !error.is_eof() => ObjectFault::Broken {
                    text: text(&error),
                    next: self.at + fault_index(here, &error).saturating_sub(BEFORE_FAULT).max(1),
                },
                _ if self.is_at_end => ObjectFault::Cut,
                _ if here.len() > MOST_OBJECT => {
                    let text = format!("it is longer than {} MiB", MOST_OBJECT >> 20);
                    ObjectFault::Broken { text, next: self.bytes.len() }
                }
                _ => {
                    self.fill()?;
                    continue;
                }
            };
            return Ok(Err(fault));
        }
    }

    /// Moves to the next object that begins at `from` or later, or to the end of the file.
    pub fn skip_to_object(&mut self, from: usize) -> io::Result<()> {
        self.at = from.min(self.bytes.len());
        let mut search = self.at;
        loop {
            while let Some(found) = self.first_key.find(&self.bytes[search..]) {
                let key = search + found;
                if let Some(brace) = brace_before(&self.bytes[self.at..key]) {
                    self.at += brace;
                    return Ok(());
                }
                search = key + 1;
            }
            // The brace and a part of the key may be in the bytes that were read.
            let kept = self.bytes.len().saturating_sub(MOST_BLANKS + FIRST_KEY.len());
            self.at = self.at.max(kept);
            if self.is_at_end {
                self.at = self.bytes.len();
                return Ok(());
            }
            let left = self.bytes.len() - self.at;
            self.fill()?;
            search = left.saturating_sub(FIRST_KEY.len());
        }
    }

    /// Moves over the rest of the file.
    pub fn skip_all(&mut self) {
        self.at = self.bytes.len();
    }

    /// Returns the index just behind the next byte.
    pub fn after_next_byte(&self) -> usize {
        self.at + 1
    }

    /// Reads as many bytes as there are, at least a chunk: a long object is parsed again only a few times.
    fn fill(&mut self) -> io::Result<()> {
        self.bytes.drain(..self.at);
        self.before += self.at as u64;
        self.at = 0;
        let wanted = self.chunk.max(self.bytes.len()) as u64;
        let read = self.reader.by_ref().take(wanted).read_to_end(&mut self.bytes)?;
        self.is_at_end = read == 0;
        Ok(())
    }
}

/// Returns the index of the brace before a key, if only blanks are between them.
fn brace_before(text: &[u8]) -> Option<usize> {
    let blanks = text.iter().rev().take_while(|byte| byte.is_ascii_whitespace());
    let brace = text.len().checked_sub(blanks.count() + 1)?;
    (text[brace] == b'{').then_some(brace)
}

/// Returns the index of the fault in the text.
fn fault_index(text: &[u8], error: &serde_json::Error) -> usize {
    let line_start = match error.line().checked_sub(2) {
        Some(breaks) => memchr_iter(b'\n', text).nth(breaks).map_or(0, |index| index + 1),
        None => 0,
    };
    (line_start + error.column()).min(text.len())
}

/// Returns the reason without the place, which counts from the begin of the object.
fn text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(&*text, |(reason, _)| reason);
    match error.is_data() {
        true => format!("it is no object of a trace: {reason}"),
        false => format!("it is not valid JSON: {reason}"),
    }
}

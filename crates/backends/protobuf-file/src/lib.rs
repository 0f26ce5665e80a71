//! Reads protobuf files: fields one after the other, of which most are skipped unread. Model files have this form. They
//! contain gigabytes of weights, but the server needs only a few names.
//!
//! # Invariants
//! - Any bytes are read or refused: the number of fields and the length of a text are bounded.

#![warn(missing_docs)]

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek},
    path::Path,
};

/// The reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read at all.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is not protobuf, or not the whole file.
    #[error("it is damaged or incomplete")]
    Malformed,
    /// It has more fields than are read.
    #[error("it has too many parts to inspect")]
    TooManyFields,
}

/// The result of reading.
pub type Result<T, E = ReadError> = std::result::Result<T, E>;

/// Most fields that are read in one file: a graph of a million nodes has fewer.
const MOST_FIELDS: u32 = 4_000_000;
/// Longest text in bytes. A longer one is not a name.
const LONGEST_TEXT: u64 = 64 << 10;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number, or the bits of a float.
    Number(u64),
    /// Text, bytes or a message of this many bytes, which begin at the reader's position.
    Bytes(Span),
}

/// The end of a message in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset behind its last byte.
    pub end: u64,
}

/// A reader for a small part of a file.
pub struct Reader<'i> {
    input: BufReader<Box<dyn Input + 'i>>,
    at: u64,
    length: u64,
    fields_left: u32,
}

trait Input: Read + Seek {}

impl<T: Read + Seek> Input for T {}

impl<'i> Reader<'i> {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::of_file(File::open(path)?)
    }

    /// Makes a reader of a whole file, which is at its start.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub fn of_file(file: File) -> Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::new(Box::new(file), length))
    }

    /// Makes a reader of the bytes of a file.
    pub fn of_bytes(bytes: &'i [u8]) -> Self {
        Self::new(Box::new(Cursor::new(bytes)), bytes.len() as u64)
    }

    fn new(input: Box<dyn Input + 'i>, length: u64) -> Self {
        let input = BufReader::with_capacity(32 << 10, input);
        Self { input, at: 0, length, fields_left: MOST_FIELDS }
    }

    /// Calls `each` with every field of the file, as [`Reader::fields`] does.
    ///
    /// # Errors
    /// Those of [`Reader::fields`].
    pub fn all_fields(
        &mut self,
        each: impl FnMut(&mut Self, u64, FieldValue) -> Result<()>,
    ) -> Result<()> {
        self.fields(Span { end: self.length }, each)
    }

    /// Calls `each` with the number and the value of every field of a message. Skips bytes that `each` does not read.
    ///
    /// # Errors
    /// When the message is malformed, or `each` refuses a field.
    pub fn fields(
        &mut self,
        message: Span,
        mut each: impl FnMut(&mut Self, u64, FieldValue) -> Result<()>,
    ) -> Result<()> {
        while self.at < message.end {
            self.fields_left = self.fields_left.checked_sub(1).ok_or(ReadError::TooManyFields)?;
            let tag = self.number(message)?;
            let value = self.value(tag & 7, message)?;
            each(self, tag >> 3, value)?;
            if let FieldValue::Bytes(span) = value {
                self.skip_to(span.end)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, wire_type: u64, message: Span) -> Result<FieldValue> {
        Ok(match wire_type {
            0 => FieldValue::Number(self.number(message)?),
            1 => FieldValue::Number(u64::from_le_bytes(self.bytes(message)?)),
            2 => {
                let length = self.number(message)?;
                let end = self.at.checked_add(length).filter(|&end| end <= message.end);
                FieldValue::Bytes(Span { end: end.ok_or(ReadError::Malformed)? })
            }
            5 => FieldValue::Number(u64::from(u32::from_le_bytes(self.bytes(message)?))),
            _ => return Err(ReadError::Malformed),
        })
    }

    /// Reads the text that ends at `span`.
    ///
    /// # Errors
    /// When it is longer than a name, or not UTF-8.
    pub fn text(&mut self, span: Span) -> Result<String> {
        let length = span.end.saturating_sub(self.at);
        if length > LONGEST_TEXT {
            return Err(ReadError::Malformed);
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.input.read_exact(&mut bytes)?;
        self.at = span.end;
        String::from_utf8(bytes).map_err(|_| ReadError::Malformed)
    }

    fn number(&mut self, message: Span) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.bytes(message)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ReadError::Malformed)
    }

    fn bytes<const N: usize>(&mut self, message: Span) -> Result<[u8; N]> {
        let end = self.at + N as u64;
        if end > message.end {
            return Err(ReadError::Malformed);
        }
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.at = end;
        Ok(bytes)
    }

    fn skip_to(&mut self, end: u64) -> io::Result<()> {
        let distance = end.saturating_sub(self.at);
        self.at = self.at.max(end);
        self.input.seek_relative(i64::try_from(distance).unwrap_or(i64::MAX))
    }
}

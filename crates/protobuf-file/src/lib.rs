//! Protobuf as it lies in a file: fields one after the other, of which most are skipped unread. Model files are such
//! files, and of gigabytes of weights one needs a few names.
//!
//! # Invariants
//! - Any bytes are read or refused: how many fields are looked at and how long a text may be is bounded.

#![warn(missing_docs)]

use std::io::{self, BufReader, Read, Seek};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read at all.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is not protobuf, or not the whole of it.
    #[error("it is damaged, or not the whole of the file")]
    Malformed,
    /// More fields than are looked at.
    #[error("it has more parts than are looked at")]
    TooManyFields,
}

/// Fields of one file that are looked at: a graph of a million nodes has fewer.
const MOST_FIELDS: u32 = 4_000_000;
/// A name; what is longer is none.
const LONGEST_TEXT: u64 = 64 << 10;

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// As in the definition of the message.
    pub number: u64,
    /// What it holds.
    pub value: FieldValue,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number, or the bits of a float.
    Number(u64),
    /// Text, bytes or a message of this many bytes, which begin where the reader is.
    Bytes(Span),
}

/// Where a message ends in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Behind its last byte.
    pub end: u64,
}

/// Reads a file of which one needs a little.
pub struct Reader<R> {
    input: BufReader<R>,
    at: u64,
    fields_left: u32,
}

impl<R: Read + Seek> Reader<R> {
    /// From where `input` is.
    pub fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(32 << 10, input), at: 0, fields_left: MOST_FIELDS }
    }

    /// The next field of the message that ends at `message.end`. Fields that were not read are skipped: `last` is the one
    /// before.
    ///
    /// # Errors
    /// The bytes are no such field.
    pub fn next(&mut self, message: Span, last: Option<Field>) -> Result<Option<Field>, ReadError> {
        if let Some(Field { value: FieldValue::Bytes(span), .. }) = last {
            self.skip_to(span.end)?;
        }
        if self.at >= message.end {
            return Ok(None);
        }
        self.fields_left = self.fields_left.checked_sub(1).ok_or(ReadError::TooManyFields)?;
        let tag = self.number(message)?;
        let value = match tag & 7 {
            0 => FieldValue::Number(self.number(message)?),
            1 => FieldValue::Number(u64::from_le_bytes(self.bytes(message)?)),
            2 => {
                let length = self.number(message)?;
                let end = self.at.checked_add(length).filter(|&end| end <= message.end);
                FieldValue::Bytes(Span { end: end.ok_or(ReadError::Malformed)? })
            }
            5 => FieldValue::Number(u64::from(u32::from_le_bytes(self.bytes(message)?))),
            _ => return Err(ReadError::Malformed),
        };
        Ok(Some(Field { number: tag >> 3, value }))
    }

    /// Calls `each` with every field of a message; what it does not read is skipped.
    ///
    /// # Errors
    /// The message is no such one, or `each` refuses a field.
    pub fn fields(
        &mut self,
        message: Span,
        mut each: impl FnMut(&mut Self, Field) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut last = None;
        while let Some(field) = self.next(message, last)? {
            each(self, field)?;
            last = Some(field);
        }
        Ok(())
    }

    /// The text that ends there.
    ///
    /// # Errors
    /// It is longer than a name, or no text.
    pub fn text(&mut self, span: Span) -> Result<String, ReadError> {
        let length = span.end.saturating_sub(self.at);
        if length > LONGEST_TEXT {
            return Err(ReadError::Malformed);
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.input.read_exact(&mut bytes)?;
        self.at = span.end;
        String::from_utf8(bytes).map_err(|_| ReadError::Malformed)
    }

    fn number(&mut self, message: Span) -> Result<u64, ReadError> {
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

    fn bytes<const N: usize>(&mut self, message: Span) -> Result<[u8; N], ReadError> {
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

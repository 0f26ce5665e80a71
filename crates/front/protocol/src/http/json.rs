//! A cursor over JSON text, for typed decoding without a tree of values.
//!
//! Reasons against a general JSON crate: Triton's dialect has `NaN` and `Infinity`; strings are bytes that need not be
//! UTF-8. Clients match on the texts and offsets of syntax errors. Tensor data must go number by number into its
//! buffer, whatever the order of the keys.

use std::borrow::Cow;

use super::{
    json_error::{ExpectedKind, JsonError, MAX_DEPTH, SyntaxFault},
    plain_text::plain_length,
};

pub(crate) type Result<T, E = JsonError> = std::result::Result<T, E>;

#[derive(Clone, Debug)]
pub(crate) struct JsonCursor<'a> {
    text: &'a [u8],
    pos: usize,
}

/// The kind of a value, by its first byte. `Other` is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Unsigned(u64),
    /// A number below zero.
    Negative(i64),
    Real(f64),
}

impl Number {
    pub fn as_u64(self) -> Option<u64> {
        if let Number::Unsigned(n) = self { Some(n) } else { None }
    }

    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Unsigned(n) => i64::try_from(n).ok(),
            Number::Negative(n) => Some(n),
            Number::Real(_) => None,
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Number::Unsigned(n) => n as f64,
            Number::Negative(n) => n as f64,
            Number::Real(x) => x,
        }
    }
}

/// The mark of UTF-8, which editors and clients on Windows write.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<'a> JsonCursor<'a> {
    /// Returns a cursor at the beginning, after a byte order mark.
    pub fn new(text: &'a [u8]) -> Self {
        let pos = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Self { text, pos }
    }

    /// Returns a cursor on the same text at `pos`, an earlier [`Self::position`].
    pub fn at(&self, pos: usize) -> Self {
        Self { text: self.text, pos }
    }

    pub fn position(&self) -> usize {
        self.pos
    }

    pub fn text_left(&self) -> usize {
        self.text.len().saturating_sub(self.pos)
    }

    /// Checks the syntax of `text` as one document.
    pub fn check_document(text: &[u8]) -> Result<()> {
        JsonCursor::new(text).check()
    }

    /// Checks the syntax of the rest of the text as one document.
    pub fn check(&self) -> Result<()> {
        let mut cursor = self.clone();
        cursor.skip_whitespace();
        if cursor.peek().is_none() {
            return Err(cursor.error(SyntaxFault::Empty));
        }
        cursor.skip_value()?;
        cursor.end_document()
    }

    /// Checks that only white space follows. A zero byte ends the text for Triton's parser. A binary tensor that begins
    /// with one then causes the error about its header instead of one about JSON.
    pub fn end_document(&mut self) -> Result<()> {
        self.skip_whitespace();
        match self.peek() {
            None | Some(0) => Ok(()),
            Some(_) => Err(self.error(SyntaxFault::RootNotSingular)),
        }
    }

    /// Returns the kind of the next value and moves to its first byte.
    #[inline]
    pub fn kind(&mut self) -> Kind {
        self.skip_whitespace();
        match self.peek() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => Kind::Number,
            _ => Kind::Other,
        }
    }

    /// Checks one value and moves past it.
    pub fn skip_value(&mut self) -> Result<()> {
        self.skip_nested(0)
    }

    fn skip_nested(&mut self, depth: usize) -> Result<()> {
        match self.kind() {
            kind @ (Kind::Object | Kind::Array) => {
                check_depth(depth + 1)?;
                self.open();
                let mut is_first = true;
                loop {
                    let has_next = match kind {
                        Kind::Object => self.next_member(&mut is_first)?.is_some(),
                        _ => self.next_element(&mut is_first)?,
                    };
                    if !has_next {
                        return Ok(());
                    }
                    self.skip_nested(depth + 1)?;
                }
            }
            Kind::String => self.skip_string(),
            Kind::Number => self.number().map(drop),
            Kind::Bool => self.boolean().map(drop),
            Kind::Null => self.literal(b"null"),
            Kind::Other => Err(self.error(SyntaxFault::InvalidValue)),
        }
    }

    /// Moves past the `{` or `[` that [`Self::kind`] has found.
    pub fn open(&mut self) {
        self.pos += 1;
    }

    /// Returns the key of the next member and moves to its value; `None` after the last member.
    #[inline]
    pub fn next_member(&mut self, is_first: &mut bool) -> Result<Option<Cow<'a, [u8]>>> {
        if !self.next(b'}', SyntaxFault::MissingCommaInObject, is_first)? {
            return Ok(None);
        }
        self.skip_whitespace();
        if self.peek() != Some(b'"') {
            return Err(self.error(SyntaxFault::MissingName));
        }
        let key = self.string()?;
        self.skip_whitespace();
        if !self.eat(b':') {
            return Err(self.error(SyntaxFault::MissingColon));
        }
        self.skip_whitespace();
        Ok(Some(key))
    }

    /// Moves to the next element; `false` after the last one.
    #[inline]
    pub fn next_element(&mut self, is_first: &mut bool) -> Result<bool> {
        self.next(b']', SyntaxFault::MissingCommaInArray, is_first)
    }

    /// Moves past the comma before the next item; `false` past `end`.
    #[inline]
    fn next(&mut self, end: u8, no_comma: SyntaxFault, is_first: &mut bool) -> Result<bool> {
        self.skip_whitespace();
        match self.peek() {
            Some(byte) if byte == end => {
                self.pos += 1;
                return Ok(false);
            }
            _ if *is_first => {}
            Some(b',') => self.pos += 1,
            _ => return Err(self.error(no_comma)),
        }
        *is_first = false;
        Ok(true)
    }

    pub fn boolean(&mut self) -> Result<bool> {
        if self.peek() == Some(b't') {
            self.literal(b"true").map(|()| true)
        } else {
            self.literal(b"false").map(|()| false)
        }
    }

    pub(super) fn literal(&mut self, word: &[u8]) -> Result<()> {
        for &byte in word {
            if !self.eat(byte) {
                return Err(self.error(SyntaxFault::InvalidValue));
            }
        }
        Ok(())
    }

    /// Returns the bytes of a string with escapes resolved; borrowed if it has none.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        let start = self.pos + 1;
        match self.plain_string() {
            Some(plain) => Ok(Cow::Borrowed(plain)),
            None => self.escaped_string(start).map(Cow::Owned),
        }
    }

    fn skip_string(&mut self) -> Result<()> {
        let start = self.pos + 1;
        match self.plain_string() {
            Some(_) => Ok(()),
            None => self.escaped_string(start).map(drop),
        }
    }

    /// Returns the bytes of a string without escapes. Returns `None` at any other byte and leaves the cursor on it.
    #[inline]
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.pos += 1;
        let rest = self.rest();
        let length = plain_length(rest);
        self.pos += length;
        let plain = rest.get(..length)?;
        self.eat(b'"').then_some(plain)
    }

    /// Returns the bytes of the string that starts at `start`. The cursor is on the first byte of it that is not plain.
    fn escaped_string(&mut self, start: usize) -> Result<Vec<u8>> {
        let mut unescaped = self.since(start).to_vec();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(unescaped);
                }
                Some(b'\\') => self.escape(&mut unescaped)?,
                None | Some(0) => {
                    return Err(self.error(SyntaxFault::MissingQuotationMark));
                }
                Some(_) => return Err(self.error(SyntaxFault::InvalidEscape)),
            }
            let run = self.pos;
            self.pos += plain_length(self.rest());
            unescaped.extend_from_slice(self.since(run));
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let start = self.pos;
        let byte = match self.text.get(start + 1) {
            Some(&c @ (b'"' | b'\\' | b'/')) => c,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(start, out),
            _ => return Err(self.error(SyntaxFault::InvalidEscape)),
        };
        self.pos += 2;
        out.push(byte);
        Ok(())
    }

    fn unicode_escape(&mut self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        let invalid = || SyntaxFault::InvalidSurrogate.at(start);
        let mut code = self.hex4(start + 2, start)?;
        self.pos = start + 6;
        if (0xd800..0xdc00).contains(&code) {
            if self.text.get(self.pos..self.pos + 2) != Some(b"\\u") {
                return Err(invalid());
            }
            let low = self.hex4(self.pos + 2, start)?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(invalid());
            }
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            self.pos += 6;
        }
        let character = char::from_u32(code).ok_or_else(invalid)?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex4(&self, at: usize, escape_start: usize) -> Result<u32> {
        let digits = self.text.get(at..at + 4).unwrap_or_default();
        let value = digits.iter().try_fold(0, |n, &b| Some(n * 16 + char::from(b).to_digit(16)?));
        value
            .filter(|_| digits.len() == 4)
            .ok_or_else(|| SyntaxFault::InvalidHexDigit.at(escape_start))
    }

    #[inline]
    pub fn skip_whitespace(&mut self) {
        self.pos += whitespace(self.text, self.pos);
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.pos += usize::from(is_next);
        is_next
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// Moves past bytes that were read through [`JsonCursor::rest`].
    pub(super) fn advance(&mut self, count: usize) {
        self.pos += count;
    }

    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.pos).unwrap_or_default()
    }

    pub(super) fn error(&self, fault: SyntaxFault) -> JsonError {
        fault.at(self.pos)
    }
}

/// Returns the number of bytes of white space from `start` on.
#[inline]
pub(super) fn whitespace(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count()
}

pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth <= MAX_DEPTH { Ok(()) } else { Err(JsonError::TooDeep) }
}

/// These return a value of a given kind, or the error for the wrong kind.
impl<'a> JsonCursor<'a> {
    pub fn expect_string(&mut self) -> Result<Cow<'a, [u8]>> {
        self.expect(Kind::String, ExpectedKind::String)?;
        self.string()
    }

    pub fn expect_bool(&mut self) -> Result<bool> {
        self.expect(Kind::Bool, ExpectedKind::Boolean)?;
        self.boolean()
    }

    pub fn expect_f64(&mut self) -> Result<f64> {
        self.expect(Kind::Number, ExpectedKind::Number)?;
        Ok(self.number()?.as_f64())
    }

    pub fn expect_u64(&mut self) -> Result<u64> {
        self.expect(Kind::Number, ExpectedKind::Unsigned)?;
        self.number()?.as_u64().ok_or(JsonError::WrongKind(ExpectedKind::Unsigned))
    }

    pub fn expect_i64(&mut self) -> Result<i64> {
        self.expect(Kind::Number, ExpectedKind::Signed)?;
        self.number()?.as_i64().ok_or(JsonError::WrongKind(ExpectedKind::Signed))
    }

    /// Leaves the cursor on the `[`.
    pub fn expect_array(&mut self) -> Result<()> {
        self.expect(Kind::Array, ExpectedKind::Array)
    }

    #[inline]
    fn expect(&mut self, kind: Kind, expected: ExpectedKind) -> Result<()> {
        if self.kind() == kind { Ok(()) } else { Err(JsonError::WrongKind(expected)) }
    }
}

/// Calls `member` with each key of the object at the cursor; it must move past the value. A value that is not an object
/// counts as one without members and is skipped; the caller reports the error.
pub(crate) fn for_each_member<'a, E: From<JsonError>>(
    cursor: &mut JsonCursor<'a>,
    mut member: impl FnMut(&[u8], &mut JsonCursor<'a>) -> Result<(), E>,
) -> Result<(), E> {
    if cursor.kind() != Kind::Object {
        return Ok(cursor.skip_value()?);
    }
    cursor.open();
    let mut is_first = true;
    while let Some(key) = cursor.next_member(&mut is_first)? {
        member(&key, cursor)?;
    }
    Ok(())
}

/// Calls `element` for each element of the array at the cursor; it must move past the element.
pub(crate) fn for_each_element<'a, E: From<JsonError>>(
    cursor: &mut JsonCursor<'a>,
    mut element: impl FnMut(&mut JsonCursor<'a>) -> Result<(), E>,
) -> Result<(), E> {
    cursor.expect_array()?;
    cursor.open();
    let mut is_first = true;
    while cursor.next_element(&mut is_first)? {
        element(cursor)?;
    }
    Ok(())
}

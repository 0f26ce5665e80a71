//! A request as a record of the access log, and the two forms of its line.

use std::{
    fmt::{self, Write as _},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use galatea_types::TraceContext;

use super::AccessFormat;
use crate::logger::{line::write_number, quoting::write_escaped, time::write_iso_micros};

/// Longest text chosen by a client, in bytes.
const MAX_TEXT: usize = 1024;

/// A request and its outcome.
#[derive(Clone)]
pub struct AccessRecord<'a> {
    /// The time at which its head was received.
    pub time: SystemTime,
    /// The client's request id; empty when it gave none.
    pub id: &'a str,
    /// The sender, in plain characters: address and port of the client, or `unix`.
    pub peer: &'a dyn fmt::Display,
    /// `http` or `grpc`.
    pub protocol: &'static str,
    /// The HTTP method; empty when it could not be read.
    pub method: &'a str,
    /// The path without its query; for gRPC the full name of the call. Empty when it could not be read.
    pub path: &'a str,
    /// The model; empty when the request is about none.
    pub model: &'a str,
    /// The version that answered, or else the version that was asked for.
    pub version: Option<i64>,
    /// The HTTP status, or the gRPC code.
    pub status: u16,
    /// Bytes of the request's body or message.
    pub bytes_in: u64,
    /// Bytes of the response's body or message.
    pub bytes_out: u64,
    /// The time in queues, summed over the steps of an ensemble. `None` when it entered no queue.
    pub queue: Option<Duration>,
    /// The time that its model or models computed for it.
    pub compute: Option<Duration>,
    /// The time from its head to its answer.
    pub total: Duration,
    /// The identity that the client has proved; empty when clients need not prove one.
    pub identity: &'a str,
    /// The client's span and the span of the request.
    pub trace: Option<(&'a TraceContext, &'a TraceContext)>,
}

impl AccessRecord<'_> {
    /// Appends the line.
    pub(super) fn write(&self, format: AccessFormat, out: &mut String) {
        let (head, end) = match format {
            AccessFormat::Text => ("", "\n"),
            AccessFormat::Json => ("{\"type\":\"access\"", "}\n"),
        };
        out.push_str(head);
        self.each_field(&mut Line { out, format });
        out.push_str(end);
    }

    /// Writes the fields in their order. The order is part of the format: add fields at the end only.
    #[inline]
    fn each_field(&self, line: &mut Line<'_>) {
        line.plain("time", |out| write_time(out, self.time));
        line.text("id", self.id);
        // Writing to a String cannot fail.
        line.plain("peer", |out| _ = write!(out, "{}", self.peer));
        line.plain("protocol", |out| out.push_str(self.protocol));
        line.text("method", self.method);
        line.text("path", self.path);
        line.text("model", self.model);
        line.number("version", self.version);
        line.number("status", Some(self.status));
        line.number("bytes_in", Some(self.bytes_in));
        line.number("bytes_out", Some(self.bytes_out));
        line.number("queue_us", self.queue.map(micros));
        line.number("compute_us", self.compute.map(micros));
        line.number("total_us", Some(micros(self.total)));
        let (client, own) = self.trace.unzip();
        line.hex("trace_id", own.map(|own| own.trace_id()), 32);
        line.hex("span_id", own.map(|own| own.span_id().into()), 16);
        line.hex("parent_id", client.map(|client| client.span_id().into()), 16);
        line.text("identity", self.identity);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A line as it grows. In text it is the time, then `name=value` with spaces between. `-` stands for no value; a value with other
/// than plain characters is quoted and escaped as in JSON. In JSON it is the members of an object; `null` stands for no value.
struct Line<'a> {
    out: &'a mut String,
    format: AccessFormat,
}

impl Line<'_> {
    #[inline]
    fn name(&mut self, name: &str) {
        let (before, behind) = match self.format {
            // The time comes first, and without its name.
            AccessFormat::Text if self.out.is_empty() => return,
            AccessFormat::Text => (" ", "="),
            AccessFormat::Json => (",\"", "\":"),
        };
        self.out.push_str(before);
        self.out.push_str(name);
        self.out.push_str(behind);
    }

    fn nothing(&mut self) {
        self.out.push_str(if self.format == AccessFormat::Json { "null" } else { "-" });
    }

    /// Writes a text of plain characters only.
    #[inline]
    fn plain(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.name(name);
        let quote = if self.format == AccessFormat::Json { "\"" } else { "" };
        self.out.push_str(quote);
        write(self.out);
        self.out.push_str(quote);
    }

    #[inline]
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        let may_be_bare = self.format == AccessFormat::Text && value != "-";
        match value {
            "" => self.nothing(),
            _ if may_be_bare && value.len() <= MAX_TEXT && is_plain(value) => {
                self.out.push_str(value);
            }
            _ => write_quoted(self.out, value),
        }
    }

    #[inline]
    fn number(&mut self, name: &str, value: Option<impl itoa::Integer>) {
        self.name(name);
        match value {
            Some(value) => write_number(self.out, value),
            None => self.nothing(),
        }
    }

    #[inline]
    fn hex(&mut self, name: &str, value: Option<u128>, width: usize) {
        match value {
            Some(value) => self.plain(name, |out| write_hex(out, value, width)),
            None => {
                self.name(name);
                self.nothing();
            }
        }
    }
}

/// The bytes that need no quotation marks. This is a table because most texts are short.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        plain[byte as usize] = byte != b'"' && byte != b'\\';
        byte += 1;
    }
    plain
};

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| PLAIN.get(usize::from(byte)) == Some(&true))
}

/// Writes a JSON string of a bounded length. A text that is cut ends in three points.
fn write_quoted(out: &mut String, text: &str) {
    let end = text.floor_char_boundary(MAX_TEXT);
    out.push('"');
    write_escaped(out, text.get(..end).unwrap_or_default());
    if end < text.len() {
        out.push_str("...");
    }
    out.push('"');
}

fn write_time(out: &mut String, time: SystemTime) {
    write_iso_micros(out, time.duration_since(UNIX_EPOCH).unwrap_or_default());
    out.push('Z');
}

fn write_hex(out: &mut String, number: u128, width: usize) {
    let digits = (0..width).rev().map(|place| (number >> (4 * place) & 0xf) as u32);
    out.extend(digits.filter_map(|digit| char::from_digit(digit, 16)));
}

#[cfg(test)]
mod tests;

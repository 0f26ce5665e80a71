//! One request as the access log has it, and the two forms of its line.

use std::{
    fmt::{self, Write as _},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use galatea_types::TraceContext;

use super::AccessFormat;
use crate::logger::{quoting::write_escaped, time::write_iso_micros};

/// Most bytes of a text that a client chooses.
const MAX_TEXT: usize = 1024;

/// One request and what became of it.
#[derive(Clone)]
pub struct AccessRecord<'a> {
    /// When its head was at hand.
    pub time: SystemTime,
    /// The client's; empty: it gave none.
    pub id: &'a str,
    /// Who sent it, in plain characters: address and port of the client, or `unix`.
    pub peer: &'a dyn fmt::Display,
    /// `http` or `grpc`.
    pub protocol: &'static str,
    /// Of HTTP; empty where it could not be read.
    pub method: &'a str,
    /// Without a query; of a call its full name. Empty where it could not be read.
    pub path: &'a str,
    /// Empty: the request is about none.
    pub model: &'a str,
    /// The one that answered, or else the one that was asked for.
    pub version: Option<i64>,
    /// Of HTTP the status, of gRPC the code.
    pub status: u16,
    /// Of the request's body or message.
    pub bytes_in: u64,
    /// Of the response's.
    pub bytes_out: u64,
    /// What it spent in queues, those of an ensemble's steps added up. `None`: it came to no queue.
    pub queue: Option<Duration>,
    /// What its model, or models, worked for it.
    pub compute: Option<Duration>,
    /// From its head to its answer.
    pub total: Duration,
    /// Who sent it, where clients have to prove that; else empty.
    pub identity: &'a str,
    /// The client's span and that of the request.
    pub trace: Option<(TraceContext, TraceContext)>,
}

impl AccessRecord<'_> {
    /// Appends the line.
    pub(super) fn write(&self, format: AccessFormat, out: &mut String) {
        match format {
            AccessFormat::Text => self.each_field(&mut TextLine { out }),
            AccessFormat::Json => {
                out.push_str("{\"type\":\"access\"");
                self.each_field(&mut JsonLine { out });
                out.push('}');
            }
        }
        out.push('\n');
    }

    /// The fields in their order. It is part of the format: fields are added at the end only.
    #[inline]
    fn each_field(&self, line: &mut impl Line) {
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

/// One of the forms.
trait Line {
    /// A text of plain characters only.
    fn plain(&mut self, name: &str, write: impl FnOnce(&mut String));
    fn text(&mut self, name: &str, value: &str);
    fn number(&mut self, name: &str, value: Option<impl itoa::Integer>);
    fn hex(&mut self, name: &str, value: Option<u128>, width: usize);
}

/// The time, then `name=value` with spaces between; `-` stands for nothing. A value with anything but plain characters
/// in it is quoted and escaped as in JSON.
struct TextLine<'a> {
    out: &'a mut String,
}

impl TextLine<'_> {
    #[inline]
    fn name(&mut self, name: &str) {
        // The time stands first, and without its name.
        if !self.out.is_empty() {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push('=');
        }
    }
}

impl Line for TextLine<'_> {
    #[inline]
    fn plain(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.name(name);
        write(self.out);
    }

    #[inline]
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        match value {
            "" => self.out.push('-'),
            _ if value != "-" && value.len() <= MAX_TEXT && is_plain(value) => {
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
            None => self.out.push('-'),
        }
    }

    #[inline]
    fn hex(&mut self, name: &str, value: Option<u128>, width: usize) {
        self.name(name);
        match value {
            Some(value) => write_hex(self.out, value, width),
            None => self.out.push('-'),
        }
    }
}

/// What can stand in a line without quotation marks. A table: most texts are short.
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

/// The members of an object; `null` stands for nothing.
struct JsonLine<'a> {
    out: &'a mut String,
}

impl JsonLine<'_> {
    #[inline]
    fn name(&mut self, name: &str) {
        self.out.push_str(",\"");
        self.out.push_str(name);
        self.out.push_str("\":");
    }
}

impl Line for JsonLine<'_> {
    #[inline]
    fn plain(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.name(name);
        self.out.push('"');
        write(self.out);
        self.out.push('"');
    }

    #[inline]
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        match value {
            "" => self.out.push_str("null"),
            _ => write_quoted(self.out, value),
        }
    }

    #[inline]
    fn number(&mut self, name: &str, value: Option<impl itoa::Integer>) {
        self.name(name);
        match value {
            Some(value) => write_number(self.out, value),
            None => self.out.push_str("null"),
        }
    }

    #[inline]
    fn hex(&mut self, name: &str, value: Option<u128>, width: usize) {
        match value {
            Some(value) => self.plain(name, |out| write_hex(out, value, width)),
            None => {
                self.name(name);
                self.out.push_str("null");
            }
        }
    }
}

/// A JSON string of a bounded length; a text that was cut ends in three points.
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

fn write_number(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

fn write_hex(out: &mut String, number: u128, width: usize) {
    let digits = (0..width).rev().map(|place| (number >> (4 * place) & 0xf) as u32);
    out.extend(digits.filter_map(|digit| char::from_digit(digit, 16)));
}

#[cfg(test)]
mod tests;

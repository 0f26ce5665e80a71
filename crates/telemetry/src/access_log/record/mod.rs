//! One request as the access log has it, and the two forms of its line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use galatea_types::TraceContext;

use super::AccessFormat;
use crate::calendar::civil_date;

/// Most bytes of a text that a client chooses.
const MAX_TEXT: usize = 1024;

/// One request and what became of it.
#[derive(Clone, Debug)]
pub struct AccessRecord<'a> {
    /// When its head was at hand.
    pub time: SystemTime,
    /// The client's; empty: it gave none.
    pub id: &'a str,
    /// Address and port of the client; `unix` on a Unix socket.
    pub peer: &'a str,
    /// `http` or `grpc`.
    pub protocol: &'a str,
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
    /// The client's span and that of the request.
    pub trace: Option<(TraceContext, TraceContext)>,
}

impl AccessRecord<'_> {
    /// Appends the line.
    pub(super) fn write(&self, format: AccessFormat, out: &mut Vec<u8>) {
        match format {
            AccessFormat::Text => self.each_field(&mut TextLine { out }),
            AccessFormat::Json => {
                out.extend_from_slice(b"{\"type\":\"access\"");
                self.each_field(&mut JsonLine { out });
                out.push(b'}');
            }
        }
        out.push(b'\n');
    }

    /// The fields in their order. It is part of the format: fields are added at the end only.
    fn each_field(&self, line: &mut impl Line) {
        line.time(self.time);
        line.text("id", self.id);
        line.text("peer", self.peer);
        line.text("protocol", self.protocol);
        line.text("method", self.method);
        line.text("path", self.path);
        line.text("model", self.model);
        line.number("version", self.version.map(i128::from));
        line.number("status", Some(self.status.into()));
        line.number("bytes_in", Some(self.bytes_in.into()));
        line.number("bytes_out", Some(self.bytes_out.into()));
        line.number("queue_us", self.queue.map(micros));
        line.number("compute_us", self.compute.map(micros));
        line.number("total_us", Some(micros(self.total)));
        let (client, own) = self.trace.unzip();
        line.hex("trace_id", own.map(|own| own.trace_id()), 32);
        line.hex("span_id", own.map(|own| own.span_id().into()), 16);
        line.hex("parent_id", client.map(|client| client.span_id().into()), 16);
    }
}

fn micros(duration: Duration) -> i128 {
    i128::try_from(duration.as_micros()).unwrap_or(i128::MAX)
}

/// One of the forms.
trait Line {
    fn time(&mut self, time: SystemTime);
    fn text(&mut self, name: &str, value: &str);
    fn number(&mut self, name: &str, value: Option<i128>);
    fn hex(&mut self, name: &str, value: Option<u128>, width: usize);
}

/// The time, then `name=value` with spaces between; `-` stands for nothing. A value with anything but plain characters
/// in it is quoted and escaped as in JSON.
struct TextLine<'a> {
    out: &'a mut Vec<u8>,
}

impl TextLine<'_> {
    fn name(&mut self, name: &str) {
        self.out.push(b' ');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'=');
    }
}

impl Line for TextLine<'_> {
    fn time(&mut self, time: SystemTime) {
        write_time(self.out, time);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        match value {
            "" => self.out.push(b'-'),
            _ if value != "-" && value.len() <= MAX_TEXT && value.bytes().all(is_plain) => {
                self.out.extend_from_slice(value.as_bytes());
            }
            _ => write_quoted(self.out, value),
        }
    }

    fn number(&mut self, name: &str, value: Option<i128>) {
        self.name(name);
        match value {
            Some(value) => write_number(self.out, value),
            None => self.out.push(b'-'),
        }
    }

    fn hex(&mut self, name: &str, value: Option<u128>, width: usize) {
        self.name(name);
        match value {
            Some(value) => write_hex(self.out, value, width),
            None => self.out.push(b'-'),
        }
    }
}

/// The members of an object; `null` stands for nothing.
struct JsonLine<'a> {
    out: &'a mut Vec<u8>,
}

impl JsonLine<'_> {
    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

impl Line for JsonLine<'_> {
    fn time(&mut self, time: SystemTime) {
        self.name("time");
        self.out.push(b'"');
        write_time(self.out, time);
        self.out.push(b'"');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        match value {
            "" => self.out.extend_from_slice(b"null"),
            _ => write_quoted(self.out, value),
        }
    }

    fn number(&mut self, name: &str, value: Option<i128>) {
        self.name(name);
        match value {
            Some(value) => write_number(self.out, value),
            None => self.out.extend_from_slice(b"null"),
        }
    }

    fn hex(&mut self, name: &str, value: Option<u128>, width: usize) {
        self.name(name);
        match value {
            Some(value) => {
                self.out.push(b'"');
                write_hex(self.out, value, width);
                self.out.push(b'"');
            }
            None => self.out.extend_from_slice(b"null"),
        }
    }
}

/// A JSON string of a bounded length; a text that was cut ends in three points.
fn write_quoted(out: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(MAX_TEXT);
    out.push(b'"');
    for &byte in text.as_bytes().get(..end).unwrap_or_default() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => {
                out.extend_from_slice(b"\\u");
                write_hex(out, byte.into(), 4);
            }
            _ => out.push(byte),
        }
    }
    if end < text.len() {
        out.extend_from_slice(b"...");
    }
    out.push(b'"');
}

/// `2026-11-21T11:45:34.163989Z`
fn write_time(out: &mut Vec<u8>, time: SystemTime) {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil_date(seconds / 86_400);
    let parts = [(year, 4, b'-'), (month, 2, b'-'), (day, 2, b'T')];
    let times =
        [(seconds / 3600 % 24, 2, b':'), (seconds / 60 % 60, 2, b':'), (seconds % 60, 2, b'.')];
    let fraction = (u64::from(since_epoch.subsec_micros()), 6, b'Z');
    for (number, width, end) in parts.into_iter().chain(times).chain([fraction]) {
        write_padded(out, number, width);
        out.push(end);
    }
}

fn write_padded(out: &mut Vec<u8>, number: u64, width: u32) {
    for place in (0..width).rev() {
        let digit = number / 10_u64.pow(place) % 10;
        out.push(b'0' + u8::try_from(digit).unwrap_or_default());
    }
}

fn write_number(out: &mut Vec<u8>, number: i128) {
    let mut digits = itoa::Buffer::new();
    let digits = match i64::try_from(number) {
        Ok(number) => digits.format(number),
        Err(_) => digits.format(number),
    };
    out.extend_from_slice(digits.as_bytes());
}

fn write_hex(out: &mut Vec<u8>, number: u128, width: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for place in (0..width).rev() {
        let digit = number >> (4 * place) & 0xf;
        out.extend(usize::try_from(digit).ok().and_then(|digit| DIGITS.get(digit)));
    }
}

#[cfg(test)]
mod tests;

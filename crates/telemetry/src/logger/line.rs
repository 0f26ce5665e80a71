//! The form of one line of the log.

use std::{
    fmt::Write,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use log::{Level, Record};

use super::{LogFormat, LogSettings};
use crate::calendar::civil_date;

/// One line of the log, ready to be put into its final form.
pub(super) struct Line<'a> {
    pub severity: char,
    pub since_epoch: std::time::Duration,
    pub process: u32,
    /// Without folders: builds in different places write the same lines.
    pub file: &'a str,
    pub line: u32,
    pub message: String,
    pub format: LogFormat,
    pub has_escaping: bool,
}

impl<'a> Line<'a> {
    pub fn of(record: &Record<'a>, settings: &LogSettings) -> Self {
        let path = record.file().unwrap_or("unknown");
        Self {
            severity: severity(record.level()),
            since_epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            process: process::id(),
            file: path.rsplit(['/', '\\']).next().unwrap_or(path),
            line: record.line().unwrap_or_default(),
            message: record.args().to_string(),
            format: settings.format,
            has_escaping: settings.has_escaping,
        }
    }

    /// The line with its line break.
    ///
    /// For a person at a terminal a message of several lines is shown whole, the lines after its first indented, so
    /// that none can pass for a line of the log; a program that reads the log gets one line.
    pub fn text(&self, is_terminal: bool) -> String {
        let mut out = String::with_capacity(self.message.len() + 64);
        self.write_time(&mut out);
        // Writing to a String cannot fail.
        let _ = write!(out, " {} {}:{}] ", self.process, self.file, self.line);
        let is_table = self.message.starts_with('\n');
        let message = self.message.trim_end_matches('\n');
        if self.has_escaping && !is_table && is_terminal && message.contains('\n') {
            write_lines(&mut out, message);
        } else if self.has_escaping && !is_table {
            write_quoted(&mut out, &self.message);
        } else {
            out.push_str(&self.message);
        }
        out.push('\n');
        out
    }

    fn write_time(&self, out: &mut String) {
        let seconds = self.since_epoch.as_secs();
        let (year, month, day) = civil_date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let severity = self.severity;
        let _ = match self.format {
            LogFormat::Default => {
                let micros = self.since_epoch.subsec_micros();
                write!(
                    out,
                    "{severity}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}"
                )
            }
            LogFormat::Iso8601 => write!(
                out,
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z {severity}"
            ),
        };
    }
}

fn severity(level: Level) -> char {
    match level {
        Level::Error => 'E',
        Level::Warn => 'W',
        Level::Info | Level::Debug | Level::Trace => 'I',
    }
}

/// A JSON string; everything above ASCII stays as it is.
fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => push_escaped(out, c),
        }
    }
    out.push('"');
}

/// Line breaks as they are, the lines after the first indented.
fn write_lines(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\n    "),
            c => push_escaped(out, c),
        }
    }
}

/// A character, control characters in the form they have in JSON: they could move a terminal's cursor.
fn push_escaped(out: &mut String, c: char) {
    match c {
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        c if c < ' ' => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04X}", u32::from(c));
        }
        c => out.push(c),
    }
}

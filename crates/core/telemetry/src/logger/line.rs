//! The form of one line of the log for people and for Triton's tools.

use std::{
    process,
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use log::{Level, Record, kv};

use super::{
    LogFormat, LogSettings, SHOWN, TABLE,
    quoting::{write_lines, write_painted, write_quoted},
    time,
};

/// A line of the log, before it gets its final form.
pub(super) struct Line<'a> {
    pub level: Level,
    pub since_epoch: Duration,
    pub process: u32,
    /// The file name without folders, so that builds in different places write the same lines. Empty when there is none.
    pub file: &'a str,
    pub line: u32,
    pub message: &'a str,
    /// The message is shown unescaped: this program made it safe.
    pub is_table: bool,
    /// The text that a terminal shows in place of the message.
    pub shown: Option<String>,
}

/// The reader of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A program that reads a file or a pipe: a message is one line.
    Program,
    /// A person at a terminal: messages of several lines are shown as they are.
    Person,
}

impl<'a> Line<'a> {
    /// Makes the line of a record. `message` is the text of the record.
    pub fn of(record: &Record<'a>, message: &'a str) -> Self {
        let path = record.file().unwrap_or_default();
        let shown = record.key_values().get(kv::Key::from_str(SHOWN));
        Self {
            file: path.rsplit(['/', '\\']).next().unwrap_or(path),
            line: record.line().unwrap_or_default(),
            is_table: record.target() == TABLE,
            shown: shown.and_then(|shown| shown.to_borrowed_str().map(str::to_owned)),
            ..Self::now(record.level(), message)
        }
    }

    /// Makes a line without a place in the sources.
    pub fn now(level: Level, message: &'a str) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Cached: it needs a system call, and the value never changes.
        static PROCESS: OnceLock<u32> = OnceLock::new();
        let process = *PROCESS.get_or_init(process::id);
        let (is_table, shown) = (false, None);
        Self { level, since_epoch, process, file: "", line: 0, message, is_table, shown }
    }

    /// Appends the line with its line break.
    ///
    /// A person at a terminal sees all lines of a message. The lines after the first are indented, so that none can pass for a
    /// line of the log. A program that reads the log gets one line.
    pub fn write(&self, out: &mut String, settings: &LogSettings, reader: Reader) {
        let is_painted = reader == Reader::Person && settings.has_colours;
        let colour = is_painted.then(|| colour(self.level)).flatten();
        out.push_str(colour.unwrap_or_default());
        self.write_time(out, settings.format);
        let file = if self.file.is_empty() { "unknown" } else { self.file };
        out.push(' ');
        write_number(out, self.process);
        out.push(' ');
        out.push_str(file);
        out.push(':');
        write_number(out, self.line);
        out.push(']');
        out.push_str(if colour.is_some() { "\u{1b}[0m " } else { " " });
        let message = self.message.trim_end_matches('\n');
        if self.is_table {
            let fits = self.shown.as_ref().filter(|_| reader == Reader::Person);
            out.push_str(fits.map_or(self.message, String::as_str));
        } else if !settings.has_escaping {
            out.push_str(self.message);
        } else if reader == Reader::Program {
            write_quoted(out, self.message);
        } else if let Some(shown) = &self.shown {
            write_painted(out, shown, is_painted);
        } else if message.contains('\n') {
            write_lines(out, message);
        } else {
            write_quoted(out, self.message);
        }
        out.push('\n');
    }

    fn write_time(&self, out: &mut String, format: LogFormat) {
        let severity = severity(self.level);
        if format == LogFormat::Iso8601 {
            time::write_iso(out, self.since_epoch);
            out.push_str("Z ");
            out.push(severity);
        } else {
            out.push(severity);
            time::write_short(out, self.since_epoch);
        }
    }
}

/// Appends the number in decimal digits.
pub(crate) fn write_number(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

fn severity(level: Level) -> char {
    match level {
        Level::Error => 'E',
        Level::Warn => 'W',
        Level::Info | Level::Debug | Level::Trace => 'I',
    }
}

/// Returns the code that starts a colour for the head of a line: red for errors, yellow for warnings.
fn colour(level: Level) -> Option<&'static str> {
    match level {
        Level::Error => Some("\u{1b}[1;31m"),
        Level::Warn => Some("\u{1b}[1;33m"),
        Level::Info | Level::Debug | Level::Trace => None,
    }
}

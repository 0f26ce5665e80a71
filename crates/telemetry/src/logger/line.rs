//! The form of one line of the log.

use std::{
    fmt::Write,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use log::{Level, Record};

use super::{LogFormat, LogSettings};

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

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Counts in eras of 400 years that begin on 1 March, so that the leap day is the last day of its year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_EPOCH: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_TO_EPOCH;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (789, (1972, 2, 29)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_778, (2026, 11, 21)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil_date(days), expected, "day {days}");
        }
    }
}

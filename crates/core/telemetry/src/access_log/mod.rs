//! The access log: one line per request, beyond Triton.
//!
//! A line is made by the thread that answers the request and appended to a buffer; one thread writes what the buffer
//! holds, a few times a second at most while requests come. Where the file or the pipe takes it slower than requests
//! come, lines are dropped and counted: the log never makes a request wait.

mod record;

use std::{cell::RefCell, fmt, io, path::PathBuf, time::Duration};

pub use self::record::AccessRecord;
use crate::lines::{LineWriter, Pace};

/// How long the end, or opening the file again, waits for what is left to be written.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessFormat {
    /// The time, then `name=value` with spaces between.
    #[default]
    Text,
    /// An object.
    Json,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Standard output, between the lines of the log.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

/// The access log. Dropped, it writes what is left, and waits for that a moment at most.
pub struct AccessLog {
    format: AccessFormat,
    writer: LineWriter,
}

thread_local! {
    /// The line that is being made.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl AccessLog {
    /// Fails where the file cannot be opened.
    pub fn open(target: &AccessTarget, format: AccessFormat) -> io::Result<Self> {
        let writer = match target {
            AccessTarget::Stdout => LineWriter::stdout(Pace::Gathered, tell_of_loss),
            AccessTarget::File(path) => LineWriter::open(path, Pace::Gathered, tell_of_loss)?,
        };
        Ok(Self { format, writer })
    }

    /// Appends a line. Never waits for the file.
    pub fn write(&self, record: &AccessRecord<'_>) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            record.write(self.format, line);
            self.writer.write(line.as_bytes());
        });
    }

    /// Opens the file again, by its name: whoever rotates logs has moved it.
    ///
    /// What was written before belongs to the file that was moved. What cannot be opened stays what it was.
    pub fn reopen(&self) -> io::Result<()> {
        self.flush();
        self.writer.reopen()
    }

    /// Waits until all lines are written, a moment at most: for the end of the process, which does not wait for whoever
    /// still holds the log.
    pub fn flush(&self) {
        self.writer.flush(LAST_WRITE);
    }

    /// Lines that were lost, because there was no room for them or they could not be written fast enough.
    pub fn lost(&self) -> u64 {
        self.writer.lost()
    }
}

/// The access log has lines of requests only: it is the log that tells of those that are missing.
fn tell_of_loss(lines: u64) -> String {
    log::warn!(
        "{lines} lines of the access log were lost: its file had no room for them, or did not take them as fast as \
         requests came"
    );
    String::new()
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests;

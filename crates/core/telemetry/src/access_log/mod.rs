//! The access log: one line per request, beyond Triton.
//!
//! The thread that answers a request makes its line and appends it to a buffer. One thread writes the buffer, a few times a
//! second at most while requests come. Lines that the file or the pipe cannot take as fast are dropped and counted: the log never
//! makes a request wait.

mod record;

use std::{cell::RefCell, fmt, io, path::PathBuf, time::Duration};

pub use self::record::AccessRecord;
use crate::lines::{LineWriter, Pace};

/// Longest wait for unwritten lines, at the end of the process and before the file is opened again.
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

/// The destination of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Standard output, between the lines of the log.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

/// The access log. Its drop writes the remaining lines, and waits for that for two seconds at most.
pub struct AccessLog {
    format: AccessFormat,
    writer: LineWriter,
}

thread_local! {
    /// Memory for the line that this thread makes.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl AccessLog {
    /// Opens the destination. Fails when the file cannot be opened.
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

    /// Opens the file again by its name, because a tool that rotates logs has moved it.
    ///
    /// Earlier lines go to the file that was moved. If the file cannot be opened, the old one stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        self.flush();
        self.writer.reopen()
    }

    /// Waits until all lines are written, but not long. The end of the process calls it, because others may still hold the log.
    pub fn flush(&self) {
        self.writer.flush(LAST_WRITE);
    }

    /// Returns the number of lines lost because there was no room or writing was too slow.
    pub fn lost(&self) -> u64 {
        self.writer.lost()
    }
}

/// Reports lost lines in the server's log, because the access log has lines of requests only.
fn tell_of_loss(lines: u64) -> String {
    log::warn!("{lines} lines of the access log were lost: its disk was full or too slow");
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

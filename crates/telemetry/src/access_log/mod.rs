//! The access log: one line per request, beyond Triton.
//!
//! A line is made by the thread that answers the request and appended to a buffer; one thread writes what the buffer
//! holds, a few times a second at most while requests come. Where the file or the pipe takes it slower than requests
//! come, lines are dropped and counted: the log never makes a request wait.

mod record;
mod target;
mod writer;

use std::{
    cell::RefCell,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

pub use self::record::AccessRecord;
use self::{target::Target, writer::Writer};

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
#[derive(Debug)]
pub struct AccessLog {
    format: AccessFormat,
    dropped: Arc<AtomicU64>,
    writer: Writer,
}

thread_local! {
    /// The line that is being made.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl AccessLog {
    /// Fails where the file cannot be opened, or there is no thread for it.
    pub fn open(target: &AccessTarget, format: AccessFormat) -> io::Result<Self> {
        let dropped = Arc::default();
        let writer = Writer::start(Target::open(target)?, Arc::clone(&dropped))?;
        Ok(Self { format, dropped, writer })
    }

    /// Appends a line. Never waits for the file.
    pub fn write(&self, record: &AccessRecord<'_>) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            record.write(self.format, line);
            if !self.writer.push(line) {
                self.dropped.fetch_add(1, Relaxed);
            }
        });
    }

    /// Opens the file again, by its name: whoever rotates logs has moved it.
    pub fn reopen(&self) {
        self.writer.reopen();
    }

    /// Lines that were lost, because they could not be written or not fast enough.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

#[cfg(test)]
mod tests;

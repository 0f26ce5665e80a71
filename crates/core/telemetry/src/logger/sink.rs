//! The destination of the log: a file, or stdout and stderr.

use std::{io, path::Path, time::Duration};

use log::Level;

use super::{
    console::{stderr, stdout},
    lost_lines,
};
use crate::lines::{LineWriter, Pace};

/// Longest wait for a reader of the log at the end of the program.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The destination of lines.
#[derive(Default)]
pub(super) enum Sink {
    /// Info to stdout, warnings and errors to stderr.
    #[default]
    Console,
    File(LineWriter),
}

impl Sink {
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::Console) };
        Ok(Self::File(LineWriter::open(path, Pace::Prompt, lost_lines)?))
    }

    pub fn writer(&self, level: Level) -> &LineWriter {
        match self {
            Self::File(file) => file,
            Self::Console => console(level),
        }
    }

    pub fn reopen(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.reopen(),
            Self::Console => Ok(()),
        }
    }

    pub fn lost_in_file(&self) -> u64 {
        match self {
            Self::File(file) => file.lost(),
            Self::Console => 0,
        }
    }

    pub fn flush(&self) {
        if let Self::File(file) = self {
            file.flush(FLUSH_LIMIT);
        }
        stdout().flush(FLUSH_LIMIT);
        stderr().flush(FLUSH_LIMIT);
    }
}

/// Returns the destination of a level when there is no file.
pub(super) fn console(level: Level) -> &'static LineWriter {
    if level <= Level::Warn { stderr() } else { stdout() }
}

//! Where the lines of the log go: a file, or stdout and stderr.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Mutex,
};

use galatea_types::LockExt;
use log::Level;

/// Where lines go.
#[derive(Default)]
pub(super) enum Sink {
    /// Info to stdout, warnings and errors to stderr.
    #[default]
    Console,
    File(Mutex<File>),
}

impl Sink {
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Sink::Console) };
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Sink::File(Mutex::new(file)))
    }

    /// Whether a person reads what is logged at this level.
    pub fn is_terminal(&self, level: Level) -> bool {
        match self {
            Sink::File(_) => false,
            Sink::Console if level <= Level::Warn => io::stderr().is_terminal(),
            Sink::Console => io::stdout().is_terminal(),
        }
    }

    /// Each line is one write, so that lines of several threads do not mix.
    pub fn write(&self, level: Level, line: &[u8]) {
        // A log that cannot be written has nowhere to report that.
        let _ = match self {
            Sink::File(file) => file.lock_unpoisoned().write_all(line),
            Sink::Console if level <= Level::Warn => io::stderr().lock().write_all(line),
            Sink::Console => {
                let mut out = io::stdout().lock();
                // Whoever waits for a line through a pipe gets it now.
                out.write_all(line).and_then(|()| out.flush())
            }
        };
    }

    pub fn flush(&self) {
        let _ = match self {
            Sink::File(file) => file.lock_unpoisoned().flush(),
            Sink::Console => io::stdout().flush(),
        };
    }
}

//! What a model prints: passed on as it is, or as lines of the log where that is JSON.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read},
};

use galatea_telemetry::logger::{self, Printed};
use log::Level;

use crate::identity::WorkerIdentity;

/// A longer line becomes several.
const LONGEST_LINE: usize = 8 << 10;
/// Bytes read before the event thread polls again.
const MAX_PER_READ: usize = 64 << 10;
/// Lines kept for the error of a worker that does not start.
const KEPT_LINES: usize = 20;

/// A standard stream of a worker.
pub(crate) struct PrintedLines<R> {
    stream: R,
    level: Level,
    line: Vec<u8>,
    /// The last lines, the newest last.
    last: VecDeque<String>,
}

impl<R: Read> PrintedLines<R> {
    pub fn new(stream: R, level: Level) -> Self {
        Self { stream, level, line: Vec::new(), last: VecDeque::new() }
    }

    pub fn stream(&self) -> &R {
        &self.stream
    }

    /// Passes on what there is. False: the stream has ended.
    pub fn pass_on(&mut self, identity: &WorkerIdentity) -> bool {
        let mut buffer = [0; 4096];
        let mut left = MAX_PER_READ;
        while left > 0 {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.end_line(identity);
                    return false;
                }
                Ok(length) => {
                    left = left.saturating_sub(length);
                    self.take(buffer.get(..length).unwrap_or_default(), identity);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// The last lines, each after a line break.
    pub fn last_lines(&self) -> String {
        self.last.iter().map(|line| format!("\n{line}")).collect()
    }

    fn take(&mut self, bytes: &[u8], identity: &WorkerIdentity) {
        logger::print_of_model(self.level, &identity.model, Printed::Bytes(bytes));
        for &byte in bytes {
            if byte == b'\n' {
                self.end_line(identity);
                continue;
            }
            self.line.push(byte);
            if self.line.len() >= LONGEST_LINE {
                self.end_line(identity);
            }
        }
    }

    fn end_line(&mut self, identity: &WorkerIdentity) {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        if line.is_empty() {
            return;
        }
        logger::print_of_model(self.level, &identity.model, Printed::Line(&line));
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

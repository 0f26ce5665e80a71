//! What a model prints, line by line into the log.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read},
};

use log::Level;

use crate::identity::Identity;

/// A longer line is logged in pieces.
const LONGEST_LINE: usize = 8 << 10;
/// So much is read before something else gets its turn.
const AT_ONCE: usize = 64 << 10;
/// Lines kept for the message when the worker does not start.
const KEPT_LINES: usize = 20;

/// One stream of a worker.
pub(crate) struct Printed<R> {
    stream: R,
    level: Level,
    line: Vec<u8>,
    last: VecDeque<String>,
}

impl<R: Read> Printed<R> {
    pub fn new(stream: R, level: Level) -> Self {
        Self { stream, level, line: Vec::new(), last: VecDeque::new() }
    }

    pub fn stream(&self) -> &R {
        &self.stream
    }

    /// Logs what there is. False: there will be nothing more.
    pub fn read(&mut self, identity: &Identity) -> bool {
        let mut buffer = [0; 4096];
        let mut left = AT_ONCE;
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

    /// The last lines, as one text.
    pub fn last_lines(&self) -> String {
        self.last.iter().map(|line| format!("\n{line}")).collect()
    }

    fn take(&mut self, bytes: &[u8], identity: &Identity) {
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

    fn end_line(&mut self, identity: &Identity) {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        if line.is_empty() {
            return;
        }
        log::log!(self.level, "{identity}: {line}");
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

//! The output of a model on stdout and stderr: passed on as it is, or as lines of the log when the log is JSON.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read},
    time::{Duration, Instant},
};

use galatea_telemetry::logger::{self, ModelOutput};
use log::Level;

use crate::lifecycle::WorkerIdentity;

/// Bytes of the longest line. A longer one becomes several.
const LONGEST_LINE: usize = 8 << 10;
/// Bytes read before the event thread polls again.
const MAX_PER_READ: usize = 64 << 10;
/// Time that the start of a line waits for its rest. `print` writes text and line break one after the other, and output of
/// another model must not come between them. A start that waits longer is a prompt or a progress bar.
const REST_OF_LINE: Duration = Duration::from_millis(100);
/// Lines kept for the error of a worker that does not start.
const KEPT_LINES: usize = 20;

/// A standard stream of a worker.
pub(crate) struct PrintedLines<R> {
    pub stream: R,
    level: Level,
    line: Vec<u8>,
    /// The start of a line as it was printed. The next field is the time since which it waits.
    start: Vec<u8>,
    waits_since: Option<Instant>,
    /// The last lines, the newest last.
    last: VecDeque<String>,
}

impl<R: Read> PrintedLines<R> {
    pub fn new(stream: R, level: Level) -> Self {
        let last = VecDeque::new();
        Self { stream, level, line: Vec::new(), start: Vec::new(), waits_since: None, last }
    }

    /// Passes on the output that is there. Returns false if the stream has ended.
    pub fn pass_on(&mut self, identity: &WorkerIdentity) -> bool {
        let mut buffer = [0; 4096];
        let mut left = MAX_PER_READ;
        while left > 0 {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.print_start(identity);
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

    /// Returns the last lines, each after a line break.
    pub fn last_lines(&self) -> String {
        self.last.iter().map(|line| format!("\n{line}")).collect()
    }

    /// Returns the time that the start of a line may still wait, or `None` if there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "the rest of a line is waited for in `poll`, in real time"
    )]
    pub fn wait_left(&self) -> Option<Duration> {
        self.waits_since.map(|since| REST_OF_LINE.saturating_sub(since.elapsed()))
    }

    /// Passes on the start of a line that has waited too long.
    pub fn pass_on_late_start(&mut self, identity: &WorkerIdentity) {
        if self.wait_left().is_some_and(|left| left.is_zero()) {
            self.print_start(identity);
        }
    }

    fn print_start(&mut self, identity: &WorkerIdentity) {
        self.waits_since = None;
        if !self.start.is_empty() {
            logger::print_of_model(
                self.level,
                &identity.model,
                identity.version,
                ModelOutput::Bytes(&self.start),
            );
            self.start.clear();
        }
    }

    fn take(&mut self, bytes: &[u8], identity: &WorkerIdentity) {
        self.pass_on_lines(bytes, identity);
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

    /// Passes on the whole lines in `bytes`, if any.
    fn pass_on_lines(&mut self, bytes: &[u8], identity: &WorkerIdentity) {
        let end =
            bytes.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        let (lines, start) = bytes.split_at(end);
        if !lines.is_empty() {
            self.start.extend_from_slice(lines);
            self.print_start(identity);
        }
        self.start.extend_from_slice(start);
        if self.start.len() >= LONGEST_LINE {
            self.print_start(identity);
        } else if !self.start.is_empty() {
            self.waits_since.get_or_insert_with(Instant::now);
        }
    }

    fn end_line(&mut self, identity: &WorkerIdentity) {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        if line.is_empty() {
            return;
        }
        logger::print_of_model(
            self.level,
            &identity.model,
            identity.version,
            ModelOutput::Line(&line),
        );
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each read gives one of these; then there is nothing yet.
    struct Parts(VecDeque<&'static [u8]>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some(part) = self.0.pop_front() else { return Err(ErrorKind::WouldBlock.into()) };
            buffer[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    fn lines_of(parts: &[&'static [u8]]) -> PrintedLines<Parts> {
        let identity =
            WorkerIdentity { role: "worker", model: "m".into(), version: 1, instance: None };
        let mut lines = PrintedLines::new(Parts(parts.iter().copied().collect()), Level::Info);
        assert!(lines.pass_on(&identity));
        lines
    }

    #[test]
    fn the_start_of_a_line_waits_for_the_rest() {
        assert_eq!(lines_of(&[b"whole\nnext"]).start, b"next");
        assert!(lines_of(&[b"whole\nnext"]).wait_left().is_some_and(|left| left <= REST_OF_LINE));
        for all in [&[&b"start"[..], b" rest\n"][..], &[b"50 %\r"], &[&[b'x'; 4096], &[b'y'; 4096]]]
        {
            let lines = lines_of(all);
            assert_eq!((lines.start.len(), lines.wait_left()), (0, None));
        }
    }

    #[test]
    fn it_does_not_wait_for_ever() {
        let identity =
            WorkerIdentity { role: "worker", model: "m".into(), version: 1, instance: None };
        let mut lines = lines_of(&[b"prompt: "]);
        lines.pass_on_late_start(&identity);
        assert_eq!(lines.start, b"prompt: ");
        lines.waits_since = Instant::now().checked_sub(REST_OF_LINE);
        lines.pass_on_late_start(&identity);
        assert_eq!((lines.start.len(), lines.wait_left()), (0, None));
    }
}

//! Progress as lines of the log.

use std::time::{Duration, Instant};

use super::{Progress, download, megabytes, of};

/// Interval between two lines about the same work.
const INTERVAL: Duration = Duration::from_secs(10);

/// Writes a line when work begins or ends, and one every ten seconds with the current state.
#[derive(Debug)]
pub struct LogProgress {
    file: String,
    total: Option<u64>,
    done: u64,
    doing: String,
    /// Time of the last line.
    told_at: Instant,
}

impl Default for LogProgress {
    fn default() -> Self {
        let (file, doing) = (String::new(), String::new());
        Self { file, total: None, done: 0, doing, told_at: Instant::now() }
    }
}

impl LogProgress {
    #[expect(clippy::disallowed_methods, reason = "lines are written as time passes")]
    fn is_due(&mut self) -> bool {
        let is_due = self.told_at.elapsed() >= INTERVAL;
        if is_due {
            self.told_at = Instant::now();
        }
        is_due
    }

    /// Returns the current action, with the received bytes of a download.
    fn state(&self) -> String {
        match self.file.as_str() {
            "" => self.doing.clone(),
            file => format!("{file}: {:.1}{} MB", megabytes(self.done), of(self.total)),
        }
    }
}

impl Progress for LogProgress {
    fn started(&mut self, file: &str, done: u64, total: Option<u64>) {
        log::info!("{}", download(file, done, total));
        (self.file, self.done, self.total) = (file.to_owned(), done, total);
        self.told_at = Instant::now();
    }

    fn advanced(&mut self, done: u64) {
        self.done = done;
        if self.is_due() {
            log::info!("{}", self.state());
        }
    }

    fn finished(&mut self) {
        self.file.clear();
    }

    fn doing(&mut self, text: &str) {
        text.clone_into(&mut self.doing);
    }

    fn waits(&mut self, elapsed: Duration) {
        if self.is_due() {
            log::info!("{} ({} s so far)", self.state(), elapsed.as_secs());
        }
    }

    fn note(&mut self, text: &str) {
        log::info!("{text}");
        self.doing(text);
        self.told_at = Instant::now();
    }
}

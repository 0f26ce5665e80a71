//! Progress on standard error, for a person.

use std::{
    io::{IsTerminal, Write, stderr},
    time::Duration,
};

use super::{Progress, download, megabytes, of};

/// Seconds between two lines about the same work if there is no terminal.
const INTERVAL: u64 = 10;

/// Most characters of the current action. A longer line would wrap, and could not be drawn again.
const LONGEST: usize = 60;

/// Shows a bar and a changing line on a terminal. Elsewhere it writes a line at each quarter of a download, and one every
/// ten seconds. All output goes to standard error.
#[derive(Debug)]
pub struct TerminalProgress {
    is_terminal: bool,
    total: Option<u64>,
    done: u64,
    is_download: bool,
    /// Last step shown: a hundredth on a terminal, a quarter elsewhere. Without a total, a megabyte.
    shown: Option<u64>,
    doing: String,
    /// Seconds since the work began.
    elapsed: u64,
    /// Time of the last line, in the same seconds.
    told_at: u64,
    /// True if a changing line is shown.
    has_line: bool,
}

impl TerminalProgress {
    /// Makes a display for standard error as it is now.
    pub fn new() -> Self {
        Self::of(stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            total: None,
            done: 0,
            is_download: false,
            shown: None,
            doing: String::new(),
            elapsed: 0,
            told_at: 0,
            has_line: false,
        }
    }

    fn step(&self, done: u64) -> u64 {
        let parts = if self.is_terminal { 100 } else { 4 };
        match self.total {
            Some(total) if total > 0 => done.saturating_mul(parts) / total,
            _ if self.is_terminal => done >> 20,
            _ => done >> 24,
        }
    }

    /// Returns the current state, for a changing line or for a line of its own.
    fn state(&self) -> String {
        let elapsed = match self.elapsed {
            0 => String::new(),
            seconds => format!(" ({seconds} s so far)"),
        };
        if !self.is_download {
            return format!("{}{elapsed}", self.doing);
        }
        let amount = format!("{:.1}{} MB", megabytes(self.done), of(self.total));
        let bar = self.total.filter(|&total| total > 0 && self.is_terminal);
        let bar = bar.map_or(String::new(), |total| {
            let filled = usize::try_from((self.done.min(total) * 30) / total).unwrap_or(30);
            format!("[{}{}] ", "=".repeat(filled), " ".repeat(30 - filled))
        });
        format!("{bar}{amount}{elapsed}")
    }

    fn draw(&mut self) {
        let state = self.state();
        self.told_at = self.elapsed;
        if self.is_terminal {
            self.has_line = true;
            write_error(&format!("\r\x1b[K  {state}"));
        } else {
            write_error(&format!("  {state}\n"));
        }
    }
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for TerminalProgress {
    fn started(&mut self, file: &str, done: u64, total: Option<u64>) {
        self.note(&download(file, done, total));
        (self.is_download, self.total, self.shown) = (true, total, None);
        self.advanced(done);
    }

    fn advanced(&mut self, done: u64) {
        self.done = done;
        let step = self.step(done);
        if self.shown != Some(step) {
            self.shown = Some(step);
            self.draw();
        }
    }

    fn finished(&mut self) {
        if std::mem::take(&mut self.has_line) {
            // The bar of a download stays; a line about a step is not needed any more.
            write_error(if self.is_download { "\n" } else { "\r\x1b[K" });
        }
        self.is_download = false;
    }

    fn doing(&mut self, text: &str) {
        // Output of programs may contain control characters, which a terminal would obey.
        self.doing = text.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        if self.is_terminal {
            self.draw();
        }
    }

    fn waits(&mut self, elapsed: Duration) {
        self.elapsed = elapsed.as_secs();
        if self.is_terminal || self.elapsed >= self.told_at + INTERVAL {
            self.draw();
        }
    }

    fn note(&mut self, text: &str) {
        if std::mem::take(&mut self.has_line) {
            write_error("\r\x1b[K");
        }
        write_error(&format!("{text}\n"));
        self.told_at = self.elapsed;
        self.doing = text.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    }
}

/// Writes to standard error. A closed one is not a failure.
fn write_error(text: &str) {
    let mut out = stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_has_amount_and_duration_and_no_control_characters() {
        let mut progress = TerminalProgress::of(true);
        progress.doing(&format!("pip: \x1b[31m{}", "x".repeat(100)));
        progress.waits(Duration::from_secs(12));
        let state = progress.state();
        assert!(state.starts_with("pip: [31mxx") && state.ends_with(" (12 s so far)"), "{state}");
        assert!(state.chars().count() < 80, "{state}");
        progress.started("a.whl", 0, Some(10_000_000));
        progress.advanced(5_000_000);
        let bar = format!("[{}{}] 5.0 of 10.0 MB", "=".repeat(15), " ".repeat(15));
        assert!(progress.state().starts_with(&bar), "{}", progress.state());
    }
}

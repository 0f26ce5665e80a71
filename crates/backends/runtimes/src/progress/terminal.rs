//! Progress on standard error, for a person.

use std::{
    io::{IsTerminal, Write, stderr},
    time::Duration,
};

use super::{Progress, download, megabytes, of};

/// Between two lines about the same work, where there is no terminal.
const INTERVAL: u64 = 10;

/// Characters of what is being done: a longer line would be broken, and could not be drawn again.
const LONGEST: usize = 60;

/// A bar and a line that changes on a terminal; elsewhere a line at each quarter of a download, and one every ten seconds.
/// Always on standard error.
#[derive(Debug)]
pub struct TerminalProgress {
    is_terminal: bool,
    total: Option<u64>,
    done: u64,
    is_download: bool,
    /// Last step shown: a hundredth on a terminal, a quarter elsewhere; or a megabyte.
    shown: Option<u64>,
    doing: String,
    /// Seconds since the work began.
    elapsed: u64,
    /// When the last line was written, in the same seconds.
    told_at: u64,
    /// Whether there is a line that changes.
    has_line: bool,
}

impl TerminalProgress {
    /// For standard error as it is now.
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

    /// What is being done, for a line that changes or for one of its own.
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
            // The bar of a download stays, a line about a step has served its purpose.
            write_error(if self.is_download { "\n" } else { "\r\x1b[K" });
        }
        self.is_download = false;
    }

    fn doing(&mut self, text: &str) {
        // Programs write what they like; a terminal obeys control characters.
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

/// A closed standard error is no reason to fail.
fn write_error(text: &str) {
    let mut out = stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_done_and_how_long_without_control_characters() {
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

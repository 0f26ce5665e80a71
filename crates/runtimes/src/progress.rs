//! How an installation reports its progress, and a bar for a terminal.

use std::io::{IsTerminal, Write, stderr};

/// Receives the progress of an installation.
pub trait Progress {
    /// A download begins. `done` bytes are here already, from an earlier attempt. `total` is `None` when
    /// the server does not send a length.
    fn started(&mut self, file: &str, done: u64, total: Option<u64>);

    /// `done` bytes are here.
    fn advanced(&mut self, done: u64);

    /// The download is over, whole or not.
    fn finished(&mut self);

    /// A remark for the user.
    fn note(&mut self, text: &str);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentProgress;

impl Progress for SilentProgress {
    fn started(&mut self, _file: &str, _done: u64, _total: Option<u64>) {}
    fn advanced(&mut self, _done: u64) {}
    fn finished(&mut self) {}
    fn note(&mut self, _text: &str) {}
}

/// A bar on a terminal, a line at each quarter elsewhere; always on standard error.
#[derive(Debug)]
pub struct TerminalProgress {
    is_terminal: bool,
    total: Option<u64>,
    /// Last step shown: a hundredth on a terminal, a quarter elsewhere; or a megabyte.
    shown: Option<u64>,
}

impl TerminalProgress {
    /// For standard error as it is now.
    pub fn new() -> Self {
        Self { is_terminal: stderr().is_terminal(), total: None, shown: None }
    }

    fn step(&self, done: u64) -> u64 {
        let parts = if self.is_terminal { 100 } else { 4 };
        match self.total {
            Some(total) if total > 0 => done.saturating_mul(parts) / total,
            _ if self.is_terminal => done >> 20,
            _ => done >> 24,
        }
    }

    fn draw(&self, done: u64) {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let of = self.total.map_or(String::new(), |t| format!(" of {:.1}", megabytes(t)));
        let amount = format!("{:.1}{of} MB", megabytes(done));
        if !self.is_terminal {
            write_error(&format!("  {amount}\n"));
            return;
        }
        let bar = self.total.filter(|&t| t > 0).map_or(String::new(), |total| {
            let filled = usize::try_from((done.min(total) * 30) / total).unwrap_or(30);
            format!("[{}{}] ", "=".repeat(filled), " ".repeat(30 - filled))
        });
        write_error(&format!("\r\x1b[K  {bar}{amount}"));
    }
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for TerminalProgress {
    fn started(&mut self, file: &str, done: u64, total: Option<u64>) {
        let from = if done > 0 { " (going on where it stopped)" } else { "" };
        write_error(&format!("downloading {file}{from}\n"));
        self.total = total;
        self.shown = None;
        self.advanced(done);
    }

    fn advanced(&mut self, done: u64) {
        let step = self.step(done);
        if self.shown != Some(step) {
            self.shown = Some(step);
            self.draw(done);
        }
    }

    fn finished(&mut self) {
        if self.is_terminal && self.shown.is_some() {
            write_error("\n");
        }
    }

    fn note(&mut self, text: &str) {
        write_error(&format!("{text}\n"));
    }
}

/// A closed standard error is no reason to fail.
fn write_error(text: &str) {
    let mut out = stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

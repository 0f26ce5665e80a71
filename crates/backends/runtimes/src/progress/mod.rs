//! Progress of long work. [`TerminalProgress`] shows it to a person, [`LogProgress`] writes it into the log.

mod log;
mod terminal;

use std::{fmt, sync::Arc, time::Duration};

pub use self::{log::LogProgress, terminal::TerminalProgress};

/// Receives the progress of an installation.
pub trait Progress {
    /// Starts a download. `done` bytes exist already, from an earlier attempt. `total` is `None` when the server does not
    /// send a length.
    fn started(&mut self, file: &str, done: u64, total: Option<u64>);

    /// Reports that `done` bytes have been received.
    fn advanced(&mut self, done: u64);

    /// Ends the download or the step, complete or not.
    fn finished(&mut self);

    /// Reports the current action, such as the last line of a program's output.
    fn doing(&mut self, _text: &str) {}

    /// Reports that the work continues, `elapsed` after its start. Called about once a second if there is nothing else to
    /// report.
    fn waits(&mut self, _elapsed: Duration) {}

    /// Shows a remark to the user.
    fn note(&mut self, text: &str);
}

/// Shows nothing.
#[cfg(test)]
pub(crate) struct SilentProgress;

#[cfg(test)]
impl Progress for SilentProgress {
    fn started(&mut self, _file: &str, _done: u64, _total: Option<u64>) {}
    fn advanced(&mut self, _done: u64) {}
    fn finished(&mut self) {}
    fn note(&mut self, _text: &str) {}
}

/// Makes a receiver for the progress of one piece of work. The default writes into the log.
#[derive(Clone)]
pub struct ProgressMaker(Arc<dyn Fn() -> Box<dyn Progress> + Send + Sync>);

impl ProgressMaker {
    /// Returns a maker that calls `make` for each piece of work.
    pub fn new(make: impl Fn() -> Box<dyn Progress> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Returns a receiver for the progress of one piece of work.
    pub fn make(&self) -> Box<dyn Progress> {
        (self.0)()
    }
}

impl Default for ProgressMaker {
    fn default() -> Self {
        Self::new(|| Box::new(LogProgress::default()))
    }
}

impl fmt::Debug for ProgressMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressMaker")
    }
}

/// Converts bytes to megabytes for display.
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Returns ` of 539.0`, if the total is known.
fn of(total: Option<u64>) -> String {
    total.map_or(String::new(), |total| format!(" of {:.1}", megabytes(total)))
}

/// Returns the line about the start of a download.
fn download(file: &str, done: u64, total: Option<u64>) -> String {
    let size = total.map_or(String::new(), |total| format!(" ({:.1} MB)", megabytes(total)));
    let from = if done > 0 { " (resuming where it stopped)" } else { "" };
    format!("downloading {file}{size}{from}")
}

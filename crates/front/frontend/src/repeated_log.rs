//! Log lines about events that may happen thousands of times a second.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use galatea_types::LockExt;

/// The shortest time between two such lines.
const PAUSE: Duration = Duration::from_secs(30);

/// Writes a warning at once, then at most one per pause, with the number of events since the last.
#[derive(Debug, Default)]
pub(crate) struct RepeatedLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    written: Option<Instant>,
    /// Events since the last line.
    unwritten: u64,
    total: u64,
}

impl RepeatedLog {
    /// Counts an event and, if a line is due, writes it with `text`.
    pub fn warn(&self, text: impl FnOnce() -> String) {
        if let Some(count) = self.count(Instant::now()) {
            match count {
                1 => log::warn!("{}", text()),
                count => log::warn!("{} ({count} times since the last such line)", text()),
            }
        }
    }

    pub fn total(&self) -> u64 {
        self.0.lock_unpoisoned().total
    }

    /// Counts an event. Returns the number since the last line, this one included, if a line is due.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock_unpoisoned();
        state.unwritten += 1;
        state.total += 1;
        let is_due = state.written.is_none_or(|at| now.duration_since(at) >= PAUSE);
        is_due.then(|| {
            state.written = Some(now);
            std::mem::take(&mut state.unwritten)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_once_per_pause_with_the_count() {
        let log = RepeatedLog::default();
        let start = Instant::now();
        assert_eq!(log.count(start), Some(1));
        assert_eq!((1..1000).filter_map(|_| log.count(start)).count(), 0);
        assert_eq!(log.count(start + PAUSE), Some(1000));
        assert_eq!(log.total(), 1001);
    }
}

//! Lines of the log about losses that may happen thousands of times a second.

use std::time::{Duration, Instant};

/// The shortest time between two lines of a kind.
const PAUSE: Duration = Duration::from_secs(30);

/// The lines of one kind.
#[derive(Debug, Default)]
pub(crate) struct Notice {
    written: Option<Instant>,
}

impl Notice {
    /// Returns whether a line may be written at `now`. If so, it counts as written.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.written.is_none_or(|at| now.saturating_duration_since(at) >= PAUSE);
        if is_due {
            self.written = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_at_once_and_then_once_per_pause() {
        let (mut notice, start) = (Notice::default(), Instant::now());
        let times = [0, 1, 29, 30, 31, 59, 60, 200].map(Duration::from_secs);
        let written = times.map(|time| notice.is_due(start + time));
        assert_eq!(written, [true, false, false, true, false, false, true, true]);
    }
}

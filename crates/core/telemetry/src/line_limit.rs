//! A limit on log lines of one kind, so that events under load cannot flood the log.

use std::{
    fmt, mem,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use galatea_types::LockExt;

/// Length of a period.
const PERIOD: Duration = Duration::from_secs(1);
/// Most lines in a period.
const MAX_LINES: u32 = 10;

/// The limits that have suppressed lines since the last report.
static SUPPRESSING: Mutex<Vec<Arc<LimitedLine>>> = Mutex::new(Vec::new());

/// Admits a few lines per second and counts the others. It reports their number before the next line that it admits, or at a
/// [`tell_suppressed`] if no line comes.
#[derive(Debug)]
pub struct LineLimit(Arc<LimitedLine>);

/// Logs the number of suppressed lines.
type ReportSuppressed = Box<dyn Fn(u64) + Send + Sync>;

struct LimitedLine {
    recent: Mutex<RecentLines>,
    tell: ReportSuppressed,
}

/// The lines of the current period.
#[derive(Debug)]
struct RecentLines {
    period_ends_at: Instant,
    lines: u32,
    suppressed: u64,
}

impl LineLimit {
    /// Makes a limit that has admitted nothing yet. `tell` logs the number of suppressed lines.
    pub fn new(tell: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let recent = RecentLines { period_ends_at: Instant::now(), lines: 0, suppressed: 0 };
        Self(Arc::new(LimitedLine { recent: Mutex::new(recent), tell: Box::new(tell) }))
    }

    /// Returns whether another line may be logged now.
    pub fn admits(&self) -> bool {
        let admitted = self.0.recent.lock_unpoisoned().admit(Instant::now());
        match admitted {
            Admission::After(0) => true,
            Admission::After(suppressed) => {
                (self.0.tell)(suppressed);
                true
            }
            Admission::Suppressed { is_first } => {
                if is_first {
                    SUPPRESSING.lock_unpoisoned().push(self.0.clone());
                }
                false
            }
        }
    }
}

/// Reports suppressed lines that no later line has reported, because the flood is over. Call it from time to time.
pub fn tell_suppressed() {
    let (mut due, now) = (Vec::new(), Instant::now());
    SUPPRESSING.lock_unpoisoned().retain(|limited| {
        let mut recent = limited.recent.lock_unpoisoned();
        if let Some(count) = recent.take_suppressed(now) {
            due.push((limited.clone(), count));
        }
        recent.suppressed > 0
    });
    due.iter().for_each(|(limited, count)| (limited.tell)(*count));
}

impl fmt::Debug for LimitedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited").field("recent", &self.recent).finish_non_exhaustive()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Admission {
    /// The line may be logged, after this many suppressed lines.
    After(u64),
    Suppressed {
        is_first: bool,
    },
}

impl RecentLines {
    fn admit(&mut self, now: Instant) -> Admission {
        if now >= self.period_ends_at {
            (self.period_ends_at, self.lines) = (now + PERIOD, 0);
        }
        if self.lines >= MAX_LINES {
            self.suppressed += 1;
            return Admission::Suppressed { is_first: self.suppressed == 1 };
        }
        self.lines += 1;
        Admission::After(mem::take(&mut self.suppressed))
    }

    fn take_suppressed(&mut self, now: Instant) -> Option<u64> {
        let is_due = self.suppressed > 0 && now >= self.period_ends_at;
        is_due.then(|| mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LINE: Admission = Admission::After(0);

    #[test]
    fn lines_per_period_are_limited_and_the_next_line_counts_the_rest() {
        let start = Instant::now();
        let mut recent = RecentLines { period_ends_at: start, lines: 0, suppressed: 0 };
        (0..MAX_LINES).for_each(|_| assert_eq!(recent.admit(start), LINE));
        assert_eq!(recent.admit(start), Admission::Suppressed { is_first: true });
        assert_eq!(recent.admit(start + PERIOD / 2), Admission::Suppressed { is_first: false });
        assert_eq!(recent.admit(start + PERIOD), Admission::After(2));
        assert_eq!(recent.admit(start + PERIOD), LINE);
    }

    #[test]
    fn suppressed_lines_are_reported_after_the_flood() {
        let start = Instant::now();
        let mut recent = RecentLines { period_ends_at: start, lines: 0, suppressed: 0 };
        (0..MAX_LINES + 3).for_each(|_| _ = recent.admit(start));
        assert_eq!(recent.take_suppressed(start + PERIOD / 2), None);
        assert_eq!(recent.take_suppressed(start + PERIOD), Some(3));
        assert_eq!(recent.take_suppressed(start + PERIOD * 2), None);
    }

    #[test]
    fn suppressed_lines_are_reported_after_their_limit_is_dropped() {
        let (sender, told) = mpsc::channel();
        let limit = LineLimit::new(move |count| sender.send(count).expect("heard"));
        assert_eq!((0..MAX_LINES + 4).filter(|_| limit.admits()).count(), MAX_LINES as usize);
        tell_suppressed();
        assert!(told.try_recv().is_err(), "the period is not over");
        limit.0.recent.lock_unpoisoned().period_ends_at = Instant::now();
        drop(limit);
        tell_suppressed();
        assert_eq!(told.try_recv(), Ok(4));
        tell_suppressed();
        assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Disconnected), "and let go of");
    }
}

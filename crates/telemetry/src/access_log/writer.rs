//! The thread that writes lines, and the buffer that it takes them from.

use std::{
    io, mem,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_types::{CondvarExt, LockExt};

use super::target::Target;

/// Most bytes that wait to be written: some ten thousand lines.
const MAX_WAITING: usize = 4 << 20;
/// The thread is woken early once so many wait.
const MANY: usize = MAX_WAITING / 4;
/// How long lines are gathered before they are written: the thread is woken so often at most.
const GATHERING: Duration = Duration::from_millis(20);
/// How long the end waits for what is left to be written.
const LAST_WRITE: Duration = Duration::from_secs(2);
/// How often lost lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The buffer, and the thread that empties it.
#[derive(Debug)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// For the thread: there is something to do.
    wanted: Condvar,
    /// For the end: the thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    /// The thread waits for the first line.
    is_waiting: bool,
    is_to_reopen: bool,
    is_closed: bool,
    has_ended: bool,
}

impl State {
    fn has_nothing_to_do(&mut self) -> bool {
        self.lines.is_empty() && !self.is_urgent()
    }

    fn is_urgent(&self) -> bool {
        self.is_to_reopen || self.is_closed
    }
}

impl Writer {
    /// `dropped` counts the lines that could not be written.
    pub fn start(target: Target, dropped: Arc<AtomicU64>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread =
            WriterThread { shared: shared.clone(), target, dropped, reported: Reported::default() };
        thread::Builder::new().name("access-log".to_owned()).spawn(move || thread.run())?;
        Ok(Self(shared))
    }

    /// Appends a line; `false` where too many wait already.
    pub fn push(&self, line: &[u8]) -> bool {
        let mut state = self.0.state.lock_unpoisoned();
        let before = state.lines.len();
        let after = before + line.len();
        if after > MAX_WAITING {
            return false;
        }
        state.lines.extend_from_slice(line);
        let is_wanted = mem::take(&mut state.is_waiting) || (before < MANY && after >= MANY);
        drop(state);
        if is_wanted {
            self.0.wanted.notify_one();
        }
        true
    }

    pub fn reopen(&self) {
        self.0.state.lock_unpoisoned().is_to_reopen = true;
        self.0.wanted.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.0.state.lock_unpoisoned();
        state.is_closed = true;
        self.0.wanted.notify_one();
        drop(
            self.0.ended.wait_timeout_while_unpoisoned(state, LAST_WRITE, |state| !state.has_ended),
        );
    }
}

struct WriterThread {
    shared: Arc<Shared>,
    target: Target,
    dropped: Arc<AtomicU64>,
    reported: Reported,
}

impl WriterThread {
    fn run(mut self) {
        let mut lines = Vec::new();
        while self.take(&mut lines) {
            self.write(&lines);
            lines.clear();
            self.reported.look(&self.dropped);
        }
        self.shared.state.lock_unpoisoned().has_ended = true;
        self.shared.ended.notify_all();
    }

    /// Waits for lines, and gathers some; `false` at the end.
    fn take(&mut self, lines: &mut Vec<u8>) -> bool {
        let Shared { state, wanted, .. } = &*self.shared;
        let mut state = state.lock_unpoisoned();
        state.is_waiting = true;
        state = wanted.wait_while_unpoisoned(state, State::has_nothing_to_do);
        state.is_waiting = false;
        let is_gathering = |state: &mut State| !state.is_urgent() && state.lines.len() < MANY;
        (state, _) = wanted.wait_timeout_while_unpoisoned(state, GATHERING, is_gathering);
        mem::swap(&mut state.lines, lines);
        let is_to_reopen = mem::take(&mut state.is_to_reopen);
        let is_over = state.is_closed && lines.is_empty();
        drop(state);
        if is_to_reopen {
            // What was logged before belongs to the file that was moved.
            self.write(lines);
            lines.clear();
            self.target.reopen();
        }
        !is_over
    }

    fn write(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.target.write(lines) {
            let count = lines.iter().filter(|&&byte| byte == b'\n').count();
            self.dropped.fetch_add(count as u64, Relaxed);
            self.reported.error = Some(error);
        }
    }
}

/// What the log was told about lost lines.
#[derive(Default)]
struct Reported {
    dropped: u64,
    at: Option<Instant>,
    /// Since then.
    error: Option<io::Error>,
}

impl Reported {
    fn look(&mut self, dropped: &AtomicU64) {
        let dropped = dropped.load(Relaxed);
        let is_due = self.at.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL);
        if dropped == self.dropped || !is_due {
            return;
        }
        let count = dropped - self.dropped;
        match self.error.take() {
            Some(error) => log::warn!("{count} lines of the access log were lost: {error}"),
            None => log::warn!(
                "{count} lines of the access log were lost: they are not taken as fast as requests come"
            ),
        }
        (self.dropped, self.at) = (dropped, Some(Instant::now()));
    }
}

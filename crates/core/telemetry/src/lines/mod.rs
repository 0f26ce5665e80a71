//! Writes lines to a file, a pipe or a terminal without waiting for its reader.
//!
//! A full pipe makes its writer wait, and the writer of a log line is a thread that answers requests. So a [`LineWriter`] writes
//! at once only when that is quick: to a file, or to a pipe with room. Other lines wait in memory, up to a bound, for a thread of
//! the writer. Lines beyond the bound are lost and counted, and the count is written in their place.

mod target;

use std::{
    fs::OpenOptions,
    io, mem,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use galatea_types::{CondvarExt as _, LockExt as _};
use rustix::stdio;

use self::target::{Descriptor, LogTarget, Unwritten};

/// Time for which a gathering writer gathers lines.
const GATHERING: Duration = Duration::from_millis(20);
/// More lines than this in so short a time are a burst. The first are written at once, the others together when it is over.
const BURST: (u32, Duration) = (32, Duration::from_millis(10));
/// Memory kept for the next lines, in bytes.
const KEPT: usize = 256 << 10;
/// Time for which the thread of a writer waits for more lines before it ends.
const IDLE: Duration = Duration::from_secs(1);

/// The moment at which lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At once, if no waiting is needed: a reader of the log sees the last events, even after a crash. In a burst all but the
    /// first lines wait some milliseconds: a write for each would cost more than the events they report.
    Prompt,
    /// Some milliseconds later, many with one write: for lines that come by the thousand.
    Gathered,
}

impl Pace {
    /// Returns the time for which the thread gathers lines.
    fn gathering(self) -> Duration {
        match self {
            Self::Prompt => BURST.1,
            Self::Gathered => GATHERING,
        }
    }

    /// Returns the most bytes that may wait.
    fn bound(self) -> usize {
        match self {
            Self::Prompt => 1 << 20,
            Self::Gathered => 4 << 20,
        }
    }
}

/// Makes the text that replaces this many missing lines, with its line break.
pub type LossNotice = fn(u64) -> String;

/// Writes lines to one place, from any thread. Clones write to the same place.
#[derive(Clone)]
pub struct LineWriter {
    shared: Arc<Shared>,
}

struct Shared {
    /// The path of a file that this writer has opened.
    path: Option<PathBuf>,
    pace: Pace,
    notice: LossNotice,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    target: Arc<LogTarget>,
    /// Whole lines, possibly after the rest of a line.
    waiting: Vec<u8>,
    /// Empty memory that replaces `waiting` when the thread takes it.
    spare: Vec<u8>,
    /// The start of the current count of lines.
    counted_since: Option<Instant>,
    counted: u32,
    /// The waiting lines came in a burst, or the writer gathers.
    is_gathering: bool,
    /// Lost lines that no notice has reported yet.
    unnoticed: u64,
    lost: u64,
    /// The thread is writing bytes that it took from `waiting`.
    is_writing: bool,
    has_thread: bool,
    /// A caller waits until everything is written.
    is_flushing: bool,
}

impl State {
    fn lose(&mut self, lines: u64) {
        self.unnoticed += lines;
        self.lost += lines;
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_writing
    }

    /// Counts a line. Returns whether too many lines come to write each by itself.
    fn is_in_burst(&mut self) -> bool {
        let (lines, time) = BURST;
        let now = Instant::now();
        if self.counted_since.is_none_or(|since| now.duration_since(since) >= time) {
            (self.counted_since, self.counted) = (Some(now), 0);
        }
        self.counted += 1;
        self.counted > lines
    }
}

impl LineWriter {
    /// Appends to the file at `path`, and creates it if there is none.
    pub fn open(path: &Path, pace: Pace, notice: LossNotice) -> io::Result<Self> {
        Ok(Self::to(open(path)?, Some(path.to_owned()), pace, notice))
    }

    /// Writes to an open pipe, terminal or file.
    pub fn new(open: impl Into<OwnedFd>, pace: Pace, notice: LossNotice) -> Self {
        Self::to(LogTarget::new(Descriptor::Owned(open.into())), None, pace, notice)
    }

    /// Writes to the standard output of this program.
    pub fn stdout(pace: Pace, notice: LossNotice) -> Self {
        Self::to(LogTarget::new(Descriptor::Standard(stdio::stdout())), None, pace, notice)
    }

    /// Writes to the standard error of this program.
    pub fn stderr(pace: Pace, notice: LossNotice) -> Self {
        Self::to(LogTarget::new(Descriptor::Standard(stdio::stderr())), None, pace, notice)
    }

    fn to(target: LogTarget, path: Option<PathBuf>, pace: Pace, notice: LossNotice) -> Self {
        let state = Mutex::new(State {
            target: Arc::new(target),
            waiting: Vec::new(),
            spare: Vec::new(),
            counted_since: None,
            counted: 0,
            is_gathering: false,
            unnoticed: 0,
            lost: 0,
            is_writing: false,
            has_thread: false,
            is_flushing: false,
        });
        Self { shared: Arc::new(Shared { path, pace, notice, state, changed: Condvar::new() }) }
    }

    /// Opens the file at its path again, because the open one was moved away. A descriptor that was given to this writer stays in
    /// use. If this fails, nothing changes.
    pub fn reopen(&self) -> io::Result<()> {
        if let Some(path) = &self.shared.path {
            let target = Arc::new(open(path)?);
            self.shared.state.lock_unpoisoned().target = target;
        }
        Ok(())
    }

    /// Returns the number of lines lost so far.
    pub fn lost(&self) -> u64 {
        self.shared.state.lock_unpoisoned().lost
    }

    /// Returns whether both write to the same place, as stdout and stderr do on a terminal.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let target = |writer: &Self| writer.shared.state.lock_unpoisoned().target.clone();
        target(self).is_same_place(&target(other))
    }

    /// Returns whether the destination is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.shared.state.lock_unpoisoned().target.is_terminal()
    }

    /// Writes a line with its line break; several lines at once stay together. Never waits for a reader.
    pub fn write(&self, line: &[u8]) {
        let shared = &self.shared;
        let mut state = shared.state.lock_unpoisoned();
        let is_gathering = shared.pace == Pace::Gathered || state.is_in_burst();
        // The thread reports lost lines behind the next lines that find room.
        let at_once = !is_gathering && state.is_idle() && state.unnoticed == 0;
        let (rest, unwritten) = match at_once {
            true => state.target.write_now(line),
            false => (line, Unwritten::default()),
        };
        state.lose(unwritten.lines);
        if rest.is_empty() {
            return;
        }
        let (waited, bound) = (state.waiting.len(), shared.pace.bound());
        if waited > 0 && waited + rest.len() > bound {
            return state.lose(1);
        }
        state.is_gathering |= is_gathering;
        state.waiting.extend_from_slice(rest);
        let is_half_full = waited < bound / 2 && state.waiting.len() >= bound / 2;
        if waited == 0 || is_half_full || !state.has_thread {
            self.wake(&mut state);
        }
    }

    /// Waits until everything is written, `limit` at most: a reader may never come back.
    pub fn flush(&self, limit: Duration) {
        let shared = &self.shared;
        let mut state = shared.state.lock_unpoisoned();
        state.is_flushing = true;
        shared.changed.notify_all();
        let mut state = shared.wait_while(state, limit, |state| !state.is_idle());
        state.is_flushing = false;
    }

    /// Starts the thread when there is work for it. The thread ends when there has been none for a while.
    fn wake(&self, state: &mut State) {
        if state.has_thread {
            return self.shared.changed.notify_all();
        }
        let shared = self.shared.clone();
        let thread = thread::Builder::new().name("log".to_owned());
        state.has_thread = thread.spawn(move || shared.write_what_waits()).is_ok();
    }
}

impl Shared {
    fn write_what_waits(&self) {
        while let Some((target, mut bytes, lost)) = self.take() {
            let unwritten = target.write_all(&bytes).lines;
            let is_told = lost > 0
                && unwritten == 0
                && target.write_all((self.notice)(lost).as_bytes()) == Unwritten::default();
            let mut state = self.state.lock_unpoisoned();
            state.lose(unwritten);
            if !is_told {
                state.unnoticed += lost;
            }
            state.is_writing = false;
            if bytes.capacity() <= KEPT {
                bytes.clear();
                state.spare = bytes;
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Returns the waiting lines, their destination, and the number of lines lost behind them. `None` when none came for a while.
    fn take(&self) -> Option<(Arc<LogTarget>, Vec<u8>, u64)> {
        let state = self.state.lock_unpoisoned();
        let mut state = self.wait_while(state, IDLE, |state| state.waiting.is_empty());
        if state.waiting.is_empty() {
            state.has_thread = false;
            return None;
        }
        if mem::take(&mut state.is_gathering) {
            let is_half_full = |state: &State| state.waiting.len() >= self.pace.bound() / 2;
            let goes_on = |state: &mut State| !state.is_flushing && !is_half_full(state);
            state = self.wait_while(state, self.pace.gathering(), goes_on);
            state.is_gathering = false;
        }
        state.is_writing = true;
        let spare = mem::take(&mut state.spare);
        let bytes = mem::replace(&mut state.waiting, spare);
        Some((state.target.clone(), bytes, mem::take(&mut state.unnoticed)))
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Duration,
        condition: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_timeout_while_unpoisoned(state, limit, condition).0
    }
}

fn open(path: &Path) -> io::Result<LogTarget> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(LogTarget::new(Descriptor::Owned(file.into())))
}

#[cfg(test)]
mod tests;

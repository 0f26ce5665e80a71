//! Lines for a file, a pipe or a terminal, written without waiting for whoever reads them.
//!
//! A pipe that nobody empties makes a writer wait, and the writer of a log line is a thread that answers requests. So a
//! [`LineWriter`] writes at once only where that cannot take long: to a file, or to a pipe that has room. What finds no
//! room waits in memory for a thread of its own, up to a bound; what finds no place there either is lost and counted, and
//! the count is written where the lines are missing.

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

/// How long lines are gathered by a writer that gathers them.
const GATHERING: Duration = Duration::from_millis(20);
/// More lines than this in so short a time are a burst: the first are written at once, the others together when it is over.
const BURST: (u32, Duration) = (32, Duration::from_millis(10));
/// Memory that is kept for the next lines.
const KEPT: usize = 256 << 10;
/// How long the thread of a writer stays for more.
const IDLE: Duration = Duration::from_secs(1);

/// When lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At once, if that needs no waiting: whoever looks at the log sees what happened last, also after a crash. Of lines
    /// that come by the thousand all but the first wait some milliseconds: a write for each would cost more than what
    /// they tell of.
    Prompt,
    /// Some milliseconds later, many with one write: for lines that come by the thousand.
    Gathered,
}

impl Pace {
    /// How long the thread lets lines gather.
    fn gathering(self) -> Duration {
        match self {
            Self::Prompt => BURST.1,
            Self::Gathered => GATHERING,
        }
    }

    /// Most bytes that wait.
    fn bound(self) -> usize {
        match self {
            Self::Prompt => 1 << 20,
            Self::Gathered => 4 << 20,
        }
    }
}

/// Makes the text that stands where this many lines are missing, with its line break.
pub type LossNotice = fn(u64) -> String;

/// Writes lines to one place, from any thread. Clones write to the same.
#[derive(Clone)]
pub struct LineWriter {
    shared: Arc<Shared>,
}

struct Shared {
    /// Of a file that this writer has opened.
    path: Option<PathBuf>,
    pace: Pace,
    notice: LossNotice,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    target: Arc<LogTarget>,
    /// Whole lines, or the rest of one and whole ones.
    waiting: Vec<u8>,
    /// Empty memory for `waiting` when the thread takes that.
    spare: Vec<u8>,
    /// When lines were first counted, and how many came since then.
    counted_since: Option<Instant>,
    counted: u32,
    /// What waits came in a burst, or of a writer that gathers.
    is_gathering: bool,
    /// Lines that found no place, as far as no notice tells of them yet.
    unnoticed: u64,
    lost: u64,
    /// The thread is writing what it took from `waiting`.
    is_writing: bool,
    has_thread: bool,
    /// Somebody waits until everything is written.
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

    /// Counts a line; whether it is one of too many to write each by itself.
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
    /// Appends to the file at `path`, which is made if there is none.
    pub fn open(path: &Path, pace: Pace, notice: LossNotice) -> io::Result<Self> {
        Ok(Self::to(open(path)?, Some(path.to_owned()), pace, notice))
    }

    /// Writes to what is open already, be it a pipe, a terminal or a file.
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

    /// Opens the file at its path again, because the one that is open was moved away. What this writer was given open
    /// stays as it is, and so does everything if this fails.
    pub fn reopen(&self) -> io::Result<()> {
        if let Some(path) = &self.shared.path {
            let target = Arc::new(open(path)?);
            self.shared.state.lock_unpoisoned().target = target;
        }
        Ok(())
    }

    /// How many lines found no place so far.
    pub fn lost(&self) -> u64 {
        self.shared.state.lock_unpoisoned().lost
    }

    /// Whether both lead to the same place, as stdout and stderr do on a terminal.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let target = |writer: &Self| writer.shared.state.lock_unpoisoned().target.clone();
        target(self).is_same_place(&target(other))
    }

    /// Whether a person reads it.
    pub fn is_terminal(&self) -> bool {
        self.shared.state.lock_unpoisoned().target.is_terminal()
    }

    /// Writes a line, its line break included; several at once stay together. Never waits for a reader.
    pub fn write(&self, line: &[u8]) {
        let shared = &self.shared;
        let mut state = shared.state.lock_unpoisoned();
        let is_gathering = shared.pace == Pace::Gathered || state.is_in_burst();
        // What was lost is told behind the next lines that find room, by the thread.
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

    /// The thread is started when there is something to do for it, and ends when there has been nothing for a while.
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

    /// What waits, where it is written to, and how many lines behind it were lost. `None`: nothing came for a while.
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

//! The files of mode `triton`, which one thread writes.
//!
//! The thread wakes when a trace comes, and then at most once in [`PAUSE`]: a request that is traced costs its thread a push to a
//! list, and seldom a wake-up.

mod output;
mod writer;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use galatea_types::{Clock, CondvarExt as _, LockExt as _};

use self::writer::Writer;
use crate::sink::{FinishedTrace, TraceSink};

/// The pause between two writes, so that traces are written together.
const PAUSE: Duration = Duration::from_millis(20);
/// The most messages for which the list keeps room between two writes.
const MOST_ROOM: usize = 1 << 10;
/// The longest wait for the last traces at the end of the process.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Writes finished traces to a file, or to numbered ones.
pub struct TraceFiles {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Traces that could not be written.
    lost: Arc<AtomicU64>,
}

struct State {
    waiting: Vec<Message>,
    /// The thread; it is started with the first trace.
    thread: Thread,
    is_closed: bool,
    has_lost: bool,
}

enum Thread {
    NotStarted(Box<Writer>),
    Running,
    Ended,
}

enum Message {
    Finished(FinishedTrace),
    Retired(u64),
}

impl TraceFiles {
    /// Makes a sink whose file has this path. It is made with the first trace.
    pub fn new(path: PathBuf) -> Self {
        let lost = Arc::new(AtomicU64::new(0));
        let state = State {
            waiting: Vec::new(),
            thread: Thread::NotStarted(Box::new(Writer::new(path, lost.clone()))),
            is_closed: false,
            has_lost: false,
        };
        Self {
            shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), lost }),
        }
    }

    fn push(&self, message: Message) {
        let mut state = self.shared.state.lock_unpoisoned();
        if state.is_closed || matches!(state.thread, Thread::Ended) {
            return;
        }
        if matches!(state.thread, Thread::NotStarted(_)) {
            self.start(&mut state);
        }
        if state.waiting.is_empty() {
            self.shared.changed.notify_all();
        }
        state.waiting.push(message);
    }

    fn start(&self, state: &mut State) {
        let Thread::NotStarted(writer) = std::mem::replace(&mut state.thread, Thread::Ended) else {
            return;
        };
        let shared = self.shared.clone();
        let run = move || run(&shared, *writer);
        match thread::Builder::new().name("traces".to_owned()).spawn(run) {
            Ok(_) => state.thread = Thread::Running,
            Err(error) => log::error!("traces are lost: no thread could be started: {error}"),
        }
    }
}

impl TraceSink for TraceFiles {
    fn finished(&self, trace: FinishedTrace) {
        self.push(Message::Finished(trace));
    }

    fn retired(&self, setting: u64) {
        let has_begun =
            !matches!(self.shared.state.lock_unpoisoned().thread, Thread::NotStarted(_));
        if has_begun {
            self.push(Message::Retired(setting));
        }
    }

    fn unwritten(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    fn lost(&self) {
        let mut state = self.shared.state.lock_unpoisoned();
        if !std::mem::replace(&mut state.has_lost, true) {
            log::warn!(
                "traces are lost: those that wait to be written take all the memory for traces"
            );
        }
    }

    fn close(&self) {
        let clock = Clock::system();
        let mut state = self.shared.state.lock_unpoisoned();
        state.is_closed = true;
        self.shared.changed.notify_all();
        let is_running = |state: &mut State| matches!(state.thread, Thread::Running);
        let until = clock.after(LAST_WRITE);
        let (_state, is_late) =
            clock.wait_while_until(&self.shared.changed, state, until, is_running);
        if is_late {
            log::error!("the last traces were not written in time");
        }
    }
}

impl fmt::Debug for TraceFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceFiles").finish_non_exhaustive()
    }
}

fn run(shared: &Shared, mut writer: Writer) {
    let clock = Clock::system();
    let mut messages = Vec::new();
    loop {
        let state = shared.state.lock_unpoisoned();
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let mut state = shared.changed.wait_while_unpoisoned(state, is_idle);
        std::mem::swap(&mut state.waiting, &mut messages);
        let is_closed = state.is_closed;
        drop(state);
        for message in messages.drain(..) {
            match message {
                Message::Finished(trace) => writer.add(trace),
                Message::Retired(setting) => writer.retire(setting),
            }
        }
        messages.shrink_to(MOST_ROOM);
        writer.write();
        let state = shared.state.lock_unpoisoned();
        if is_closed && state.waiting.is_empty() {
            drop(state);
            writer.retire_all();
            break;
        }
        let is_open = |state: &mut State| !state.is_closed;
        drop(clock.wait_while_until(&shared.changed, state, clock.after(PAUSE), is_open));
    }
    shared.state.lock_unpoisoned().thread = Thread::Ended;
    shared.changed.notify_all();
}

#[cfg(test)]
mod tests;

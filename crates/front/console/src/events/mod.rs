//! The events that keep the pages of all who watch up to date: one thread samples and writes for all of them. The same thread
//! keeps the history while nobody watches.

mod sampler;

use std::{
    io,
    sync::{Arc, Condvar, Mutex, Weak},
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use galatea_engine::Engine;
use galatea_frontend::ConnectionLimits;
use galatea_types::{Clock, LockExt};
use tokio::sync::mpsc;

use self::sampler::{INTERVAL, Sampler};
use crate::{about::SharedAbout, history::History};

/// Most who may watch at a time.
const MOST_WATCHERS: usize = 64;
/// Most events that wait for one who does not read. The text is one for all.
const MOST_WAITING: usize = 16;
/// After so many looks without anybody nothing is recorded for watchers: who comes and goes makes no more work than who stays.
const EMPTY_LOOKS: u32 = 2;

/// The last event of one who did not keep up.
pub const END_OF_SLOW_WATCHER: &[u8] =
    b"event: end\ndata: {\"reason\":\"events were not read as fast as they came\"}\n\n";
/// The last event of a server that ends.
pub const END_OF_SERVER: &[u8] =
    b"event: end\ndata: {\"reason\":\"the server is about to exit\"}\n\n";

/// What the console knows of one server.
pub struct Console {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Weak<Engine>,
    connections: Arc<ConnectionLimits>,
    about: SharedAbout,
    /// Names of the groups of calls that need a header.
    restricted: Vec<&'static str>,
    clock: Clock,
    started: Instant,
    /// Between two samples.
    interval: Duration,
    hall: Mutex<Watchers>,
    someone_came: Condvar,
}

#[derive(Default)]
struct Watchers {
    /// They have the state, and get each change.
    present: Vec<mpsc::Sender<Bytes>>,
    /// They wait for the state.
    newcomers: Vec<mpsc::Sender<Bytes>>,
    has_thread: bool,
    /// The console was dropped.
    is_over: bool,
}

/// What is done for those who watch; no sampler while nobody does.
struct Sampling {
    sampler: Option<Sampler>,
    next_at: Instant,
    empty_looks: u32,
}

/// Why nobody can watch now.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// As many watch as may.
    #[error(
        "{MOST_WATCHERS} clients watch this server, which is the most; close one of their pages"
    )]
    TooMany,
    /// There is no thread.
    #[error("the thread that watches the server cannot be started: {0}")]
    NoThread(io::Error),
}

/// The events for one who watches: the whole state at once, then what changes each second. Dropped, they end.
#[derive(Debug)]
pub struct Watcher(mpsc::Receiver<Bytes>);

impl Watcher {
    /// The next event as it is sent; `None` where the watcher did not keep up.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(context)
    }
}

impl Console {
    /// Begins the history of a server. `restricted`: names of the groups of calls that need a header.
    pub fn new(
        engine: &Arc<Engine>,
        connections: Arc<ConnectionLimits>,
        about: SharedAbout,
        restricted: Vec<&'static str>,
    ) -> Self {
        Self::of(Shared::new(engine, connections, about, restricted, INTERVAL))
    }

    fn of(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        // Who watches later asks for a thread again.
        if let Err(error) = shared.ensure_thread(&mut shared.hall.lock_unpoisoned()) {
            log::warn!("the console has no history: its thread cannot be started: {error}");
        }
        Self { shared }
    }

    /// Begins to watch.
    ///
    /// # Errors
    /// Too many do so already, or there is no thread to be had.
    pub fn watch(&self) -> Result<Watcher, WatchError> {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let mut hall = self.shared.hall.lock_unpoisoned();
        if hall.count() >= MOST_WATCHERS {
            return Err(WatchError::TooMany);
        }
        self.shared.ensure_thread(&mut hall).map_err(WatchError::NoThread)?;
        hall.newcomers.push(sender);
        self.shared.someone_came.notify_one();
        Ok(Watcher(receiver))
    }
}

impl Watchers {
    /// How many watch; who has gone is forgotten.
    fn count(&mut self) -> usize {
        self.present.retain(|sender| !sender.is_closed());
        self.newcomers.retain(|sender| !sender.is_closed());
        self.present.len() + self.newcomers.len()
    }

    /// Who has no room for it is too slow, and is not sent any more.
    fn send(&mut self, event: &Bytes) {
        self.present.retain(|sender| sender.try_send(event.clone()).is_ok());
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shared.hall.lock_unpoisoned().is_over = true;
        self.shared.someone_came.notify_one();
    }
}

impl Shared {
    fn new(
        engine: &Arc<Engine>,
        connections: Arc<ConnectionLimits>,
        about: SharedAbout,
        restricted: Vec<&'static str>,
        interval: Duration,
    ) -> Self {
        let clock = engine.options().clock.clone();
        Self {
            engine: Arc::downgrade(engine),
            connections,
            about,
            restricted,
            started: clock.now(),
            clock,
            interval,
            hall: Mutex::default(),
            someone_came: Condvar::new(),
        }
    }

    fn ensure_thread(self: &Arc<Self>, hall: &mut Watchers) -> io::Result<()> {
        if !hall.has_thread {
            let shared = self.clone();
            let thread = thread::Builder::new().name("console".to_owned());
            thread.spawn(move || shared.run())?;
            hall.has_thread = true;
        }
        Ok(())
    }

    /// Keeps the history, and samples and sends for those who watch, until the console or the engine is gone.
    fn run(self: Arc<Self>) {
        let _end = EndOfThread(&self);
        let mut history = History::new(self.clock.clone());
        let mut watch = Sampling { sampler: None, next_at: self.clock.now(), empty_looks: 0 };
        loop {
            let engine = self.engine.upgrade().filter(|_| !self.hall.lock_unpoisoned().is_over);
            let Some(engine) = engine else { return self.close() };
            self.step(&mut watch, &mut history, &engine);
            drop(engine);
            let is_watched = watch.sampler.is_some();
            self.wait_until(if is_watched { watch.next_at } else { history.due() });
        }
    }

    fn step(&self, watch: &mut Sampling, history: &mut History, engine: &Engine) {
        // Of those who watch, a sample is never of a time before the last point: what comes since then is told once.
        let may_sample = watch.sampler.is_none() || self.clock.now() >= watch.next_at;
        if may_sample && self.clock.now() >= history.due() {
            history.tick(engine);
        }
        self.look(watch, engine);
        self.receive_newcomers(watch, history, engine);
    }

    /// Samples for those who watch, if it is time.
    fn look(&self, watch: &mut Sampling, engine: &Engine) {
        let Some(sampler) = &mut watch.sampler else { return };
        if self.clock.now() < watch.next_at {
            return;
        }
        watch.next_at = self.clock.now() + self.interval;
        let count = self.hall.lock_unpoisoned().count();
        watch.empty_looks = if count == 0 { watch.empty_looks + 1 } else { 0 };
        if watch.empty_looks >= EMPTY_LOOKS {
            watch.sampler = None;
        } else if count == 0 {
            sampler.rest();
        } else {
            sampler.sample(self, engine, count);
            let change = sampler.change();
            self.hall.lock_unpoisoned().send(&change);
        }
    }

    /// Their state is that of the last sample: the next change is the one after it.
    fn receive_newcomers(&self, watch: &mut Sampling, history: &History, engine: &Engine) {
        if self.hall.lock_unpoisoned().newcomers.is_empty() {
            return;
        }
        let sampler = watch.sampler.get_or_insert_with(|| {
            watch.next_at = self.clock.now() + self.interval;
            Sampler::new(self.clock.now())
        });
        watch.empty_looks = 0;
        let state = sampler.state(self, engine, history);
        // They leave the newcomers only now: the limit counts them while their state is written.
        let mut hall = self.hall.lock_unpoisoned();
        let newcomers = std::mem::take(&mut hall.newcomers);
        let received = newcomers.into_iter().filter(|n| n.try_send(state.clone()).is_ok());
        hall.present.extend(received);
    }

    fn wait_until(&self, at: Instant) {
        let hall = self.hall.lock_unpoisoned();
        let is_quiet = |hall: &mut Watchers| hall.newcomers.is_empty() && !hall.is_over;
        drop(self.clock.wait_while_until(&self.someone_came, hall, at, is_quiet));
    }

    fn close(&self) {
        *self.hall.lock_unpoisoned() = Watchers::default();
    }
}

/// After a panic nobody waits for a thread that is gone.
struct EndOfThread<'a>(&'a Shared);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}

#[cfg(test)]
mod tests;

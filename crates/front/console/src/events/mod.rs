//! The events that keep open console pages up to date. One thread samples and writes for all of them, and keeps the
//! history while nobody watches.

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
use galatea_types::{Clock, LockExt};
use tokio::sync::mpsc;

use self::sampler::{INTERVAL, Sampler};
use crate::{history::History, sources::ConsoleSources};

/// The most watchers at a time.
const MOST_WATCHERS: usize = 64;
/// The most events that wait for a watcher that does not read. All watchers share the text.
const MOST_WAITING: usize = 16;
/// The number of samples without watchers after which sampling stops. A page that reconnects often then costs no more
/// than one that stays.
const EMPTY_LOOKS: u32 = 2;

/// The last event of a watcher that was too slow.
pub const END_OF_SLOW_WATCHER: &[u8] =
    b"event: end\ndata: {\"reason\":\"the client reads events too slowly\"}\n\n";
/// The last event of a server that shuts down.
pub const END_OF_SERVER: &[u8] =
    b"event: end\ndata: {\"reason\":\"the server is about to exit\"}\n\n";

/// The console of one server.
pub struct Console {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Weak<Engine>,
    sources: ConsoleSources,
    clock: Clock,
    started: Instant,
    /// The time between two samples.
    interval: Duration,
    hall: Mutex<Watchers>,
    someone_came: Condvar,
}

#[derive(Default)]
struct Watchers {
    /// Watchers that have the state and get each change.
    present: Vec<mpsc::Sender<Bytes>>,
    /// Watchers that wait for the state.
    newcomers: Vec<mpsc::Sender<Bytes>>,
    has_thread: bool,
    /// The console was dropped.
    is_over: bool,
}

/// The work for watchers. There is no sampler while nobody watches.
struct Sampling {
    sampler: Option<Sampler>,
    next_at: Instant,
    empty_looks: u32,
}

/// The reason why nobody can watch now.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The limit on watchers is reached.
    #[error("{MOST_WATCHERS} consoles are open, the most that this server serves; close one")]
    TooMany,
    /// The thread cannot be started.
    #[error("cannot start the thread that watches the server: {0}")]
    NoThread(io::Error),
}

/// The events for one watcher: the whole state at once, then the changes of each second. Dropping it ends them.
#[derive(Debug)]
pub struct Watcher(mpsc::Receiver<Bytes>);

impl Watcher {
    /// Returns the next event as it is sent; `None` if the watcher was too slow.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(context)
    }
}

impl Console {
    /// Starts the history of a server.
    pub fn new(engine: &Arc<Engine>, sources: ConsoleSources) -> Self {
        Self::of(Shared::new(engine, sources, INTERVAL))
    }

    fn of(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        // The next watcher tries to start the thread again.
        if let Err(error) = shared.ensure_thread(&mut shared.hall.lock_unpoisoned()) {
            log::warn!("the console has no history because its thread cannot start: {error}");
        }
        Self { shared }
    }

    /// Adds a watcher.
    ///
    /// # Errors
    /// When there are too many watchers, or the thread cannot be started.
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
    /// Returns the number of watchers, and forgets those that have gone.
    fn count(&mut self) -> usize {
        self.present.retain(|sender| !sender.is_closed());
        self.newcomers.retain(|sender| !sender.is_closed());
        self.present.len() + self.newcomers.len()
    }

    /// Sends an event. A watcher without room for it is too slow and gets no more.
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
    fn new(engine: &Arc<Engine>, sources: ConsoleSources, interval: Duration) -> Self {
        let clock = engine.options().clock.clone();
        Self {
            engine: Arc::downgrade(engine),
            sources,
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

    /// Keeps the history, and samples and sends for watchers, until the console or the engine is gone.
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
        // A sample is never older than the last point, so that watchers get events since that point only once.
        let may_sample = watch.sampler.is_none() || self.clock.now() >= watch.next_at;
        if may_sample && self.clock.now() >= history.due() {
            history.tick(engine);
        }
        self.look(watch, engine);
        self.receive_newcomers(watch, history, engine);
    }

    /// Samples for the watchers, if it is time.
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

    /// Sends newcomers the state of the last sample. The next change follows that sample.
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
        // Newcomers stay listed until now, so that the limit counts them while their state is written.
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

/// Closes the watchers after a panic, so that nobody waits for a thread that is gone.
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

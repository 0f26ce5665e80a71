//! The events that keep the pages of all who watch up to date: one thread samples and writes for all of them.

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
use galatea_types::{CondvarExt, LockExt};
use tokio::sync::mpsc;

use self::sampler::{INTERVAL, Sampler};

/// Most who may watch at a time.
const MOST_WATCHERS: usize = 64;
/// Most events that wait for one who does not read. The text is one for all.
const MOST_WAITING: usize = 16;
/// After so many looks without anybody the thread ends: who comes and goes makes no more work than who stays.
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
    /// Names of the groups of calls that need a header.
    restricted: Vec<&'static str>,
    started: Instant,
    /// Between two samples.
    interval: Duration,
    hall: Mutex<Hall>,
    someone_came: Condvar,
}

/// Who watches.
#[derive(Default)]
struct Hall {
    /// They have the state, and get each change.
    present: Vec<mpsc::Sender<Bytes>>,
    /// They wait for the state.
    newcomers: Vec<mpsc::Sender<Bytes>>,
    has_thread: bool,
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
    /// Of a server. `restricted`: names of the groups of calls that need a header.
    pub fn new(
        engine: &Arc<Engine>,
        connections: Arc<ConnectionLimits>,
        restricted: Vec<&'static str>,
    ) -> Self {
        Self::with_interval(engine, connections, restricted, INTERVAL)
    }

    fn with_interval(
        engine: &Arc<Engine>,
        connections: Arc<ConnectionLimits>,
        restricted: Vec<&'static str>,
        interval: Duration,
    ) -> Self {
        let shared = Arc::new(Shared {
            engine: Arc::downgrade(engine),
            connections,
            restricted,
            started: Instant::now(),
            interval,
            hall: Mutex::default(),
            someone_came: Condvar::new(),
        });
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
        if !hall.has_thread {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name("console".to_owned());
            thread.spawn(move || shared.run()).map_err(WatchError::NoThread)?;
            hall.has_thread = true;
        }
        hall.newcomers.push(sender);
        self.shared.someone_came.notify_one();
        Ok(Watcher(receiver))
    }
}

impl Hall {
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

impl Shared {
    /// Samples and sends until nobody has watched for a while, or the engine is gone.
    fn run(self: Arc<Self>) {
        let _end = EndOfThread(&self);
        let mut empty_looks = 0;
        let mut sampler =
            Sampler::new(self.started, self.connections.clone(), self.restricted.clone());
        let mut next_at = Instant::now();
        loop {
            let Some(engine) = self.engine.upgrade() else { return self.close() };
            if Instant::now() >= next_at {
                next_at = Instant::now() + self.interval;
                let count = self.hall.lock_unpoisoned().count();
                empty_looks = if count == 0 { empty_looks + 1 } else { 0 };
                if empty_looks >= EMPTY_LOOKS && self.leave_if_empty() {
                    return;
                }
                if count > 0 {
                    sampler.sample(&engine, count);
                    let change = sampler.change();
                    self.hall.lock_unpoisoned().send(&change);
                }
            }
            self.receive_newcomers(&mut sampler, &engine);
            drop(engine);
            self.wait_until(next_at);
        }
    }

    /// Their state is that of the last sample: the next change is the one after it.
    fn receive_newcomers(&self, sampler: &mut Sampler, engine: &Engine) {
        let newcomers = std::mem::take(&mut self.hall.lock_unpoisoned().newcomers);
        if newcomers.is_empty() {
            return;
        }
        let state = sampler.state(engine);
        let mut hall = self.hall.lock_unpoisoned();
        let received = newcomers.into_iter().filter(|n| n.try_send(state.clone()).is_ok());
        hall.present.extend(received);
    }

    fn wait_until(&self, at: Instant) {
        let hall = self.hall.lock_unpoisoned();
        let left = at.saturating_duration_since(Instant::now());
        let is_quiet = |hall: &mut Hall| hall.newcomers.is_empty();
        drop(self.someone_came.wait_timeout_while_unpoisoned(hall, left, is_quiet));
    }

    /// Whether the thread may end: nobody came meanwhile, and who comes later starts another.
    fn leave_if_empty(&self) -> bool {
        let mut hall = self.hall.lock_unpoisoned();
        let is_empty = hall.count() == 0;
        hall.has_thread = !is_empty;
        is_empty
    }

    fn close(&self) {
        *self.hall.lock_unpoisoned() = Hall::default();
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

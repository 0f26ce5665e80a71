//! The threads that talk to the Redis server, each over a connection of its own.
//!
//! A thread without a connection answers every look-up with "nothing there" at once. One of them tries to connect again in
//! growing pauses (`outage`). No request waits for that.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_telemetry::LineLimit;

use super::{
    connection::{Connection, RedisError},
    outage::Turn,
    protocol::Reply,
    reachability::Reachability,
    settings::RedisSettings,
    tls::Tls,
};
use crate::{CacheKey, Entry, OnLookUp, wire};

/// Most jobs that wait for a thread.
const MAX_WAITING: usize = 1024;

/// Most bytes of responses that wait to be stored, over all threads.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Largest response that is stored and read, in bytes.
pub const MAX_VALUE: usize = 64 << 20;

/// In place of the number of losses: the thread has no connection.
const NO_CONNECTION: u64 = u64::MAX;

/// The state that all threads share.
pub struct Server {
    pub settings: RedisSettings,
    pub tls: Option<Tls>,
    pub look_up_errors: AtomicU64,
    pub insertion_errors: AtomicU64,
    pub reach: Reachability,
    waiting_bytes: AtomicUsize,
    errors: LineLimit,
}

impl Server {
    pub fn new(settings: RedisSettings, tls: Option<Tls>) -> Self {
        let address = format!("{}:{}", settings.host, settings.port);
        let reach = Reachability::new(address.clone());
        let errors = LineLimit::new(move |count| {
            log::error!("Redis at {address}: {count} more errors that were not logged");
        });
        Self {
            reach,
            settings,
            tls,
            look_up_errors: AtomicU64::new(0),
            insertion_errors: AtomicU64::new(0),
            waiting_bytes: AtomicUsize::new(0),
            errors,
        }
    }

    fn log(&self, what: &str, error: &dyn std::fmt::Display) {
        if self.errors.admits() {
            let RedisSettings { host, port, .. } = &self.settings;
            log::error!("Redis at {host}:{port}: {what}: {error}");
        }
    }
}

enum Job {
    Fetch {
        key: CacheKey,
        then: OnLookUp,
    },
    Store {
        key: CacheKey,
        value: WaitingBytes,
    },
    /// Nothing to do: the thread looks whether its connection may still be used.
    Wake,
}

/// Bytes that wait to be stored. They count as long as this value exists.
struct WaitingBytes {
    bytes: Vec<u8>,
    server: Arc<Server>,
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        self.server.waiting_bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

struct QueuedJob {
    job: Job,
    at: Instant,
}

/// A thread, and the channel to it.
pub struct Worker {
    jobs: Arc<SyncSender<QueuedJob>>,
    /// The number of losses after which the connection was made.
    connected_after: Arc<AtomicU64>,
    server: Arc<Server>,
}

/// A connection, and the number of losses after which it was made.
struct Connected {
    connection: Connection,
    losses: u64,
}

impl Worker {
    /// Connects, and starts the thread.
    pub fn start(server: Arc<Server>) -> Result<Self, RedisError> {
        let losses = server.reach.losses();
        let connection = Connection::open(&server.settings, server.tls.as_ref())?;
        let (jobs, queued) = sync_channel(MAX_WAITING);
        let (jobs, connected_after) = (Arc::new(jobs), Arc::new(AtomicU64::new(NO_CONNECTION)));
        // A full queue needs no waking. The channel ends with the cache: this does not keep it.
        let sender = Arc::downgrade(&jobs);
        let thread = server.reach.add_thread(Box::new(move || {
            if let Some(jobs) = sender.upgrade() {
                let _ = jobs.try_send(QueuedJob { job: Job::Wake, at: Instant::now() });
            }
        }));
        let body = Body {
            server: server.clone(),
            thread,
            connected_after: connected_after.clone(),
            queued,
        };
        let first = body.accept(Connected { connection, losses });
        thread::Builder::new().name("redis cache".to_owned()).spawn(move || body.run(first))?;
        Ok(Self { jobs, connected_after, server })
    }

    /// Returns whether a look-up can find anything.
    pub fn is_connected(&self) -> bool {
        self.connected_after.load(Ordering::Relaxed) == self.server.reach.losses()
    }

    /// Asks the server. A full queue finds nothing.
    pub fn fetch(&self, key: CacheKey, then: OnLookUp) {
        self.fetch_since(Instant::now(), key, then);
    }

    /// Asks the server for a request that has waited since `at`.
    pub fn fetch_since(&self, at: Instant, key: CacheKey, then: OnLookUp) {
        self.send(QueuedJob { job: Job::Fetch { key, then }, at });
    }

    /// Queues a job. Returns false when the queue is full: the job is given up.
    fn send(&self, queued: QueuedJob) -> bool {
        match self.jobs.try_send(queued) {
            Ok(()) => true,
            Err(TrySendError::Full(queued) | TrySendError::Disconnected(queued)) => {
                self.server.give_up(queued.job);
                false
            }
        }
    }

    /// Stores a response. Returns false when the queue is full.
    pub fn store(&self, key: CacheKey, entry: &Entry) -> bool {
        let server = self.server.clone();
        let size = entry.byte_size();
        let waiting = server.waiting_bytes.load(Ordering::Relaxed);
        if waiting + size > MAX_WAITING_BYTES {
            server.insertion_errors.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let bytes = wire::encode(entry);
        server.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let value = WaitingBytes { bytes, server };
        self.send(QueuedJob { job: Job::Store { key, value }, at: Instant::now() })
    }
}

/// Calls `then`, which includes all later work of the request: its panic must not end the thread.
fn call(then: OnLookUp, found: Option<Entry>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| then(found)));
    if outcome.is_err() {
        log::error!("a request panicked after its look-up in the response cache");
    }
}

/// The state of a thread.
struct Body {
    server: Arc<Server>,
    /// The number of the thread.
    thread: usize,
    connected_after: Arc<AtomicU64>,
    queued: Receiver<QueuedJob>,
}

impl Body {
    fn run(self, first: Option<Connected>) {
        let mut first = first;
        while let Some(mut connected) = first.take().or_else(|| self.connect_again()) {
            let Some(()) = self.serve(&mut connected) else { return };
        }
    }

    /// Makes a connection the one of this thread, unless the server was lost while it was made.
    fn accept(&self, mut connected: Connected) -> Option<Connected> {
        let Connected { connection, losses } = &mut connected;
        let socket = connection.take_socket();
        let is_good =
            self.server.reach.record_connection(self.thread, socket, *losses, Instant::now());
        if !is_good {
            return None;
        }
        self.connected_after.store(*losses, Ordering::Relaxed);
        Some(connected)
    }

    /// Works as long as the connection may be used. `None` when there are no senders any more.
    #[expect(clippy::disallowed_methods, reason = "a client waits for that long, in real time")]
    fn serve(&self, connected: &mut Connected) -> Option<()> {
        while connected.losses == self.server.reach.losses() {
            let QueuedJob { job, at } = self.queued.recv().ok()?;
            let is_usable = connected.losses == self.server.reach.losses();
            if !is_usable || at.elapsed() > self.server.settings.wait_timeout {
                self.server.give_up(job);
            } else {
                self.server.work(connected, job);
            }
        }
        Some(())
    }

    /// Connects again. `None` when there are no senders any more.
    fn connect_again(&self) -> Option<Connected> {
        let Server { settings, tls, reach, .. } = &*self.server;
        loop {
            let losses = reach.losses();
            if let Turn::Wait(pause) = reach.take_turn(Instant::now()) {
                self.give_up_for(pause)?;
                continue;
            }
            match Connection::open(settings, tls.as_ref()) {
                Ok(connection) => {
                    let accepted = self.accept(Connected { connection, losses });
                    if accepted.is_some() {
                        return accepted;
                    }
                }
                Err(error) => reach.record_failure(losses, Instant::now(), &error),
            }
        }
    }

    /// Gives up jobs until the pause is over or the thread is woken. `None` when there are no senders any more.
    fn give_up_for(&self, pause: Duration) -> Option<()> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.queued.recv_timeout(left) {
                Ok(QueuedJob { job: Job::Wake, .. }) => return Some(()),
                Ok(queued) => self.server.give_up(queued.job),
                Err(RecvTimeoutError::Timeout) => return Some(()),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl Server {
    /// Counts a job that is not done. A look-up then finds nothing.
    fn give_up(&self, job: Job) {
        match job {
            Job::Fetch { then, .. } => {
                self.look_up_errors.fetch_add(1, Ordering::Relaxed);
                call(then, None);
            }
            Job::Store { .. } => _ = self.insertion_errors.fetch_add(1, Ordering::Relaxed),
            Job::Wake => {}
        }
    }

    /// Does a job. A failure of the connection is known to all threads before the request goes on.
    fn work(&self, connected: &mut Connected, job: Job) {
        let Connected { connection, losses } = connected;
        let record = |outcome: Result<(), RedisError>| {
            if let Err(error) = outcome {
                self.reach.record_failure(*losses, Instant::now(), &error);
            }
        };
        match job {
            Job::Fetch { key, then } => {
                let (found, outcome) = self.look_up(connection, &key);
                record(outcome);
                call(then, found);
            }
            Job::Store { key, value } => record(self.store(connection, &key, &value.bytes)),
            Job::Wake => {}
        }
    }

    fn look_up(
        &self,
        connection: &mut Connection,
        key: &CacheKey,
    ) -> (Option<Entry>, Result<(), RedisError>) {
        let failed = || self.look_up_errors.fetch_add(1, Ordering::Relaxed);
        match connection.ask(&[b"GET", name(key).as_bytes()], MAX_VALUE) {
            Ok(Reply::Bytes(bytes)) => match wire::decode(bytes) {
                Ok(entry) => (Some(entry), Ok(())),
                Err(error) => {
                    failed();
                    self.log(&format!("the value of {}", name(key)), &error);
                    (None, Ok(()))
                }
            },
            Ok(_) => (None, Ok(())),
            Err(error) => {
                failed();
                (None, self.survives("looking up failed", error))
            }
        }
    }

    fn store(
        &self,
        connection: &mut Connection,
        key: &CacheKey,
        value: &[u8],
    ) -> Result<(), RedisError> {
        let (name, ttl) = (name(key), self.settings.ttl.map(|ttl| ttl.as_secs().to_string()));
        let mut parts: Vec<&[u8]> = vec![b"SET", name.as_bytes(), value];
        if let Some(ttl) = &ttl {
            parts.extend([&b"EX"[..], ttl.as_bytes()]);
        }
        connection.ask(&parts, 1 << 10).map(|_| ()).or_else(|error| {
            self.insertion_errors.fetch_add(1, Ordering::Relaxed);
            self.survives(&format!("Failed to insert key: {name}"), error)
        })
    }

    /// Decides whether the connection can still be used: a refused command leaves it usable, unless authentication is missing.
    fn survives(&self, what: &str, error: RedisError) -> Result<(), RedisError> {
        match error {
            RedisError::Refused(text) if !text.starts_with("NOAUTH") => {
                self.log(what, &text);
                Ok(())
            }
            other => Err(other),
        }
    }
}

/// Returns the name of a response in the server.
fn name(key: &CacheKey) -> String {
    format!("galatea:response:{key}")
}

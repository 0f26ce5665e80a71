//! The threads that talk to the Redis server, each over a connection of its own.
//!
//! A thread without a connection answers every look-up with "nothing there" at once, and tries to connect again in growing
//! pauses. No request waits for that.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_telemetry::LineLimit;

use super::{
    connection::{Connection, RedisError},
    protocol::Reply,
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

/// Pauses between attempts to connect again.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// The state that all threads share.
pub struct Server {
    pub settings: RedisSettings,
    pub tls: Option<Tls>,
    pub look_up_errors: AtomicU64,
    pub insertion_errors: AtomicU64,
    waiting_bytes: AtomicUsize,
    errors: LineLimit,
}

impl Server {
    pub fn new(settings: RedisSettings, tls: Option<Tls>) -> Self {
        let address = format!("{}:{}", settings.host, settings.port);
        let errors = LineLimit::new(move |count| {
            log::error!("Redis at {address}: {count} more errors that were not logged");
        });
        Self {
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
    Fetch { key: CacheKey, then: OnLookUp },
    Store { key: CacheKey, value: WaitingBytes },
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
    jobs: SyncSender<QueuedJob>,
    is_connected: Arc<AtomicBool>,
    server: Arc<Server>,
}

impl Worker {
    /// Starts the thread with its connection.
    pub fn start(server: Arc<Server>, connection: Connection) -> std::io::Result<Self> {
        let (jobs, queued) = sync_channel(MAX_WAITING);
        let is_connected = Arc::new(AtomicBool::new(true));
        let body = Body { server: server.clone(), is_connected: is_connected.clone(), queued };
        thread::Builder::new()
            .name("redis cache".to_owned())
            .spawn(move || body.run(connection))?;
        Ok(Self { jobs, is_connected, server })
    }

    /// Returns whether a look-up can find anything.
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
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
    is_connected: Arc<AtomicBool>,
    queued: Receiver<QueuedJob>,
}

impl Body {
    fn run(self, connection: Connection) {
        let mut connection = Some(connection);
        while let Some(mut open) = connection.take() {
            let Some(error) = self.serve(&mut open) else { return };
            self.is_connected.store(false, Ordering::Relaxed);
            self.server.log("requests are executed until it can be reached again", &error);
            drop(open);
            connection = self.connect_again();
        }
    }

    /// Works until the connection fails. `None` when there are no senders any more.
    #[expect(clippy::disallowed_methods, reason = "a client waits for that long, in real time")]
    fn serve(&self, connection: &mut Connection) -> Option<RedisError> {
        loop {
            let QueuedJob { job, at } = self.queued.recv().ok()?;
            if at.elapsed() > self.server.settings.wait_timeout {
                self.server.give_up(job);
                continue;
            }
            if let Err(error) = self.server.work(connection, job) {
                return Some(error);
            }
        }
    }

    /// Connects again. `None` when there are no senders any more.
    fn connect_again(&self) -> Option<Connection> {
        let mut pause = FIRST_PAUSE;
        loop {
            self.give_up_for(pause)?;
            match Connection::open(&self.server.settings, self.server.tls.as_ref()) {
                Ok(connection) => {
                    let RedisSettings { host, port, .. } = &self.server.settings;
                    log::info!("Redis at {host}:{port} can be reached again");
                    self.is_connected.store(true, Ordering::Relaxed);
                    return Some(connection);
                }
                Err(error) => self.server.log("it cannot be reached", &error),
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    fn give_up_for(&self, pause: Duration) -> Option<()> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.queued.recv_timeout(left) {
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
        }
    }

    /// Does a job. After an error the connection cannot be used, and the job was given up.
    fn work(&self, connection: &mut Connection, job: Job) -> Result<(), RedisError> {
        match job {
            Job::Fetch { key, then } => {
                let (found, outcome) = self.look_up(connection, &key);
                call(then, found);
                outcome
            }
            Job::Store { key, value } => self.store(connection, &key, &value.bytes),
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

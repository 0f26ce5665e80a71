//! The cache in a Redis server, which several servers may share.
//!
//! A response is one value under its key. Threads with a connection each (`worker`) do look-ups and insertions. The key selects
//! the thread, so that a look-up comes after an earlier insertion of the same key. A server that cannot be reached, or is too
//! slow, acts as a cache without entries. The threads share what they know about that (`reach`): a request waits for a lost
//! server only if it asked before the first time-out, and not longer than until then.

mod connection;
mod outage;
mod protocol;
mod reachability;
mod settings;
#[cfg(test)]
mod tests;
mod tls;
mod worker;

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use galatea_telemetry::{
    families::{RESPONSE_CACHE_ERRORS, RESPONSE_CACHE_LOSSES, RESPONSE_CACHE_LOST},
    metrics::{CacheMetrics, Figures},
};

pub use self::protocol::{Reply as RedisReply, read_reply as read_redis_reply};
pub use self::settings::{RedisSettings, SettingsError, TlsSettings};
use self::{
    connection::RedisError,
    tls::Tls,
    worker::{MAX_VALUE, Server, Worker},
};
use crate::{CacheKey, Entry, Insertion, LongWork, LookUp, OnLookUp, ResponseCache};

/// Responses in a Redis server.
pub struct RedisCache {
    server: Arc<Server>,
    workers: Vec<Worker>,
    long_work: LongWork,
}

/// The reason why the cache could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("Failed to initialize RedisCache: {0}")]
pub struct OpenError(RedisError);

impl RedisCache {
    /// Connects. Blocks until it is connected or a time-out has passed.
    ///
    /// # Errors
    /// [`OpenError`] when the server cannot be reached, or refuses the credentials.
    pub fn open(settings: RedisSettings) -> Result<Self, OpenError> {
        let tls = settings.tls.as_ref().map(|tls| Tls::open(tls, &settings.host)).transpose();
        let tls = tls.map_err(|error| OpenError(error.into()))?;
        let pool_size = settings.pool_size;
        let server = Arc::new(Server::new(settings, tls));
        let start = |_| Worker::start(server.clone());
        let workers: Result<_, RedisError> = (0..pool_size).map(start).collect();
        let workers = workers.map_err(OpenError)?;
        Ok(Self { workers, server, long_work: LongWork::default() })
    }

    fn worker(&self, key: &CacheKey) -> Option<&Worker> {
        let count = self.workers.len().max(1) as u64;
        self.workers.get((key.short() % count) as usize)
    }
}

impl ResponseCache for RedisCache {
    fn look_up(&self, key: &CacheKey) -> LookUp {
        match self.worker(key) {
            Some(worker) if worker.is_connected() => LookUp::Elsewhere,
            _ => {
                self.server.look_up_errors.fetch_add(1, Ordering::Relaxed);
                LookUp::Miss
            }
        }
    }

    fn fetch(&self, key: CacheKey, then: OnLookUp) {
        match self.worker(&key) {
            Some(worker) => worker.fetch(key, then),
            None => then(None),
        }
    }

    fn insert(&self, key: CacheKey, entry: &Entry) -> Insertion {
        match self.worker(&key).filter(|worker| worker.is_connected()) {
            Some(worker) if worker.store(key, entry) => Insertion::Done,
            _ => Insertion::Lost,
        }
    }

    fn largest_entry(&self) -> usize {
        MAX_VALUE
    }

    fn long_work(&self) -> &LongWork {
        &self.long_work
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn metrics(&self) -> Option<CacheMetrics> {
        None
    }

    fn add_figures(&self, figures: &mut Figures) {
        let Server { look_up_errors, insertion_errors, .. } = &*self.server;
        for (operation, errors) in [("lookup", look_up_errors), ("insertion", insertion_errors)] {
            let count = errors.load(Ordering::Relaxed);
            figures.set_labelled(&RESPONSE_CACHE_ERRORS, operation, count);
        }
        figures.set(&RESPONSE_CACHE_LOST, u64::from(self.server.reach.is_lost()));
        figures.set(&RESPONSE_CACHE_LOSSES, self.server.reach.losses());
    }
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisCache").field(&self.server.settings).finish()
    }
}

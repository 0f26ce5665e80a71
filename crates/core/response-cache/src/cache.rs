//! The interface of every response cache.

use std::{fmt, time::Instant};

use galatea_telemetry::metrics::{CacheMetrics, Figures};

use crate::{CacheKey, Entry, LongWork};

/// A callback for the entry that a look-up found, called on any thread.
pub type OnLookUp = Box<dyn FnOnce(Option<Entry>) + Send>;

/// A store of responses, shared by all models.
pub trait ResponseCache: Send + Sync + fmt::Debug {
    /// Returns the entry of a key, if that is known at once. Never blocks.
    fn look_up(&self, key: &CacheKey) -> LookUp;

    /// Fetches the entry of a key after a look-up returned [`LookUp::Elsewhere`]. Never blocks: it calls `then` once, in this
    /// call or on a thread of the cache.
    fn fetch(&self, key: CacheKey, then: OnLookUp);

    /// Stores a response. Never blocks.
    fn insert(&self, key: CacheKey, entry: &Entry) -> Insertion;

    /// Looks again after a look-up found nothing, in case the response was stored meanwhile. A found entry counts as a hit in
    /// place of the miss.
    fn look_again(&self, _: &CacheKey) -> Option<Entry> {
        None
    }

    /// Records that a request without an entry gets the response to an equal request that was being executed. It counts as a hit
    /// in place of the miss.
    fn miss_was_shared(&self) {}

    /// Returns the size of the largest response that is stored, in bytes.
    fn largest_entry(&self) -> usize;

    /// Returns the thread that looks up long requests.
    fn long_work(&self) -> &LongWork;

    /// Returns whether other servers read and write the same entries, so that keys must mean the same everywhere.
    fn is_shared(&self) -> bool;

    /// Returns the counters; `None` when the cache is not in the memory of this server.
    fn metrics(&self) -> Option<CacheMetrics>;

    /// Adds the other figures for the metrics page.
    fn add_figures(&self, _: &mut Figures) {}

    /// Lets look-ups that take too long find nothing. Called about twice a second; never blocks.
    fn give_up_overdue(&self, _: Instant) {}

    /// Ends the cache at the end of the server. Blocks until the deadline at most. Nothing is found or stored afterwards.
    fn close(&self, _: Instant) {}
}

/// The outcome of a look-up.
#[derive(Debug)]
pub enum LookUp {
    /// The cache has the response to an equal request.
    Hit(Entry),
    /// The cache has no such response.
    Miss,
    /// The look-up takes a while: call [`ResponseCache::fetch`].
    Elsewhere,
}

/// The outcome of an insertion.
#[derive(Debug)]
pub enum Insertion {
    /// The response is stored, or will be soon.
    Done,
    /// The key has another response, which stays.
    AlreadyThere,
    /// The response is not stored because the cache cannot take it now. The cache itself has logged that.
    Lost,
    /// The response is not stored.
    Refused(Refusal),
}

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Requested byte_size: {size} is greater than total cache size: {limit}")]
pub struct Refusal {
    /// Bytes that it would take.
    pub size: usize,
    /// Bytes that an entry may take.
    pub limit: usize,
}

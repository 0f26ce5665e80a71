//! What every cache of responses does.

use std::fmt;

use galatea_telemetry::metrics::{CacheMetrics, Figures};

use crate::{CacheKey, Entry, LongWork};

/// Called with what was found, on any thread.
pub type OnLookUp = Box<dyn FnOnce(Option<Entry>) + Send>;

/// A store of answers, shared by all models.
pub trait ResponseCache: Send + Sync + fmt::Debug {
    /// What lies under a key, as far as that is known at once. Never blocks.
    fn look_up(&self, key: &CacheKey) -> LookUp;

    /// What lies under a key, for a look-up that was answered with [`LookUp::Elsewhere`]. Never blocks: `then` is called
    /// once, by this call or on a thread of the cache.
    fn fetch(&self, key: CacheKey, then: OnLookUp);

    /// Stores an answer. Never blocks.
    fn insert(&self, key: CacheKey, entry: &Entry) -> Insertion;

    /// Looks once more where a look-up found nothing, in case the answer has come meanwhile. What is found counts in place of
    /// the miss.
    fn look_again(&self, _: &CacheKey) -> Option<Entry> {
        None
    }

    /// A request whose look-up found nothing gets the answer to an equal one that is being executed: it counts as a hit in
    /// place of the miss.
    fn miss_was_shared(&self) {}

    /// Bytes of the largest answer that is stored.
    fn largest_entry(&self) -> usize;

    /// Where long requests are looked up.
    fn long_work(&self) -> &LongWork;

    /// Whether other servers read and write the same entries, so that keys must mean the same everywhere.
    fn is_shared(&self) -> bool;

    /// What is counted of it; `None` where it is not in the memory of this server.
    fn metrics(&self) -> Option<CacheMetrics>;

    /// What the metrics page shows of it beside that.
    fn add_figures(&self, _: &mut Figures) {}
}

/// The outcome of a look-up.
#[derive(Debug)]
pub enum LookUp {
    /// An equal request was answered.
    Hit(Entry),
    /// None was.
    Miss,
    /// It takes a while to find out: see [`ResponseCache::fetch`].
    Elsewhere,
}

/// The outcome of an insertion.
#[derive(Debug)]
pub enum Insertion {
    /// It is stored, or on its way to where it will be.
    Done,
    /// Another answer lies there, and stays.
    AlreadyThere,
    /// It is not stored because the cache cannot take it now, which the cache itself has logged.
    Lost,
    /// It is not stored.
    Refused(Refusal),
}

/// Why an answer is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Requested byte_size: {size} is greater than total cache size: {limit}")]
pub struct Refusal {
    /// Bytes it would take.
    pub size: usize,
    /// Bytes that one entry may take.
    pub limit: usize,
}

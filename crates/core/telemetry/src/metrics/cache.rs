//! The families of the response cache in memory.

use std::time::Duration;

use super::text::Text;
use crate::families::{
    CACHE_ENTRIES, CACHE_EVICTIONS, CACHE_HITS, CACHE_INSERTION_TIME, CACHE_LOOKUP_TIME,
    CACHE_LOOKUPS, CACHE_MISSES, CACHE_UTILIZATION,
};

/// Counters of a response cache in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheMetrics {
    /// Bytes it may take.
    pub capacity: usize,
    /// Bytes it takes.
    pub bytes: usize,
    /// Responses it holds.
    pub entries: usize,
    /// Look-ups that found a response.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Responses that were evicted to make room for others.
    pub evictions: u64,
    /// Total duration of all look-ups.
    pub lookup_time: Duration,
    /// Total duration of all insertions.
    pub insertion_time: Duration,
}

impl CacheMetrics {
    fn utilization(&self) -> f64 {
        self.bytes as f64 / self.capacity.max(1) as f64
    }
}

/// Writes the families in Triton's order.
pub(super) fn write(text: &mut Text, cache: &CacheMetrics) {
    text.single(&CACHE_UTILIZATION, cache.utilization());
    text.single(&CACHE_ENTRIES, cache.entries);
    text.single(&CACHE_HITS, cache.hits);
    text.single(&CACHE_MISSES, cache.misses);
    text.single(&CACHE_LOOKUPS, cache.hits + cache.misses);
    text.single(&CACHE_EVICTIONS, cache.evictions);
    text.single(&CACHE_LOOKUP_TIME, cache.lookup_time.as_micros());
    text.single(&CACHE_INSERTION_TIME, cache.insertion_time.as_micros());
}

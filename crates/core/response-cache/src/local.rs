//! The cache in the memory of this server. It evicts the responses that were not asked for the longest.

use std::{
    fmt,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard},
    time::Instant,
};

use galatea_telemetry::metrics::CacheMetrics;
use galatea_types::LockExt;
use lru::LruCache;

use crate::{CacheKey, Entry, Insertion, LongWork, LookUp, OnLookUp, Refusal, ResponseCache};

/// Responses in memory, up to a number of bytes.
///
/// One lock protects everything. It is held only for a look into the table; no bytes are copied or freed under it.
pub struct LocalCache {
    capacity: usize,
    store: Mutex<Store>,
    long_work: LongWork,
}

struct Store {
    entries: LruCache<CacheKey, Entry, BuildHasherDefault<KeyHasher>>,
    figures: CacheMetrics,
}

impl LocalCache {
    /// Makes a cache that takes `capacity` bytes at most.
    pub fn new(capacity: usize) -> Self {
        let entries = LruCache::unbounded_with_hasher(BuildHasherDefault::default());
        let figures = CacheMetrics { capacity, ..CacheMetrics::default() };
        let store = Mutex::new(Store { entries, figures });
        Self { capacity, store, long_work: LongWork::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock_unpoisoned()
    }
}

impl ResponseCache for LocalCache {
    #[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
    fn look_up(&self, key: &CacheKey) -> LookUp {
        let started = Instant::now();
        let mut store = self.lock();
        let found = store.entries.get(key).cloned();
        let counter =
            if found.is_some() { &mut store.figures.hits } else { &mut store.figures.misses };
        *counter += 1;
        store.figures.lookup_time += started.elapsed();
        found.map_or(LookUp::Miss, LookUp::Hit)
    }

    /// Looks up the key. The server never calls it, because a look-up here returns at once.
    fn fetch(&self, key: CacheKey, then: OnLookUp) {
        match self.look_up(&key) {
            LookUp::Hit(entry) => then(Some(entry)),
            LookUp::Miss | LookUp::Elsewhere => then(None),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
    fn insert(&self, key: CacheKey, entry: &Entry) -> Insertion {
        let started = Instant::now();
        let (size, limit) = (entry.byte_size(), self.capacity);
        if size > limit {
            return Insertion::Refused(Refusal { size, limit });
        }
        let mut store = self.lock();
        if store.entries.contains(&key) {
            return Insertion::AlreadyThere;
        }
        let evicted = store.make_room(limit - size);
        store.figures.bytes += size;
        store.entries.put(key, entry.clone());
        store.figures.insertion_time += started.elapsed();
        drop(store);
        drop(evicted);
        Insertion::Done
    }

    fn look_again(&self, key: &CacheKey) -> Option<Entry> {
        let mut store = self.lock();
        let found = store.entries.get(key).cloned();
        if found.is_some() {
            store.hit_in_place_of_miss();
        }
        found
    }

    fn miss_was_shared(&self) {
        self.lock().hit_in_place_of_miss();
    }

    fn largest_entry(&self) -> usize {
        self.capacity
    }

    fn long_work(&self) -> &LongWork {
        &self.long_work
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn metrics(&self) -> Option<CacheMetrics> {
        let store = self.lock();
        Some(CacheMetrics { entries: store.entries.len(), ..store.figures })
    }
}

impl Store {
    fn hit_in_place_of_miss(&mut self) {
        self.figures.misses = self.figures.misses.saturating_sub(1);
        self.figures.hits += 1;
    }

    /// Evicts the entries that were not asked for the longest, until no more than `most` bytes are left.
    fn make_room(&mut self, most: usize) -> Vec<Entry> {
        let mut evicted = Vec::new();
        while self.figures.bytes > most
            && let Some((_, entry)) = self.entries.pop_lru()
        {
            self.figures.bytes -= entry.byte_size();
            self.figures.evictions += 1;
            evicted.push(entry);
        }
        evicted
    }
}

impl fmt::Debug for LocalCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCache").field("metrics", &self.metrics()).finish()
    }
}

/// Hashes keys by their first bytes: keys are hashes already, and nobody can choose them.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    /// Ignores the length of a key, which all keys share.
    fn write_usize(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use galatea_types::{DataType, Tensor};
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> CacheKey {
        let mut bytes = [0; 32];
        bytes[..2].fill(number);
        CacheKey::from_bytes(bytes)
    }

    fn entry(bytes: usize) -> Entry {
        let output = Tensor::new("Y", DataType::Uint8, [bytes as i64], vec![1; bytes]);
        Entry::copy(&[output], Vec::new()).expect("in host memory")
    }

    fn is_there(cache: &LocalCache, number: u8) -> bool {
        matches!(cache.look_up(&key(number)), LookUp::Hit(_))
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let one = entry(10);
        let cache = LocalCache::new(3 * one.byte_size());
        for number in 0..3 {
            assert!(matches!(cache.insert(key(number), &one), Insertion::Done));
        }
        assert!(is_there(&cache, 0), "asked for: the next oldest goes");
        assert!(matches!(cache.insert(key(0), &one), Insertion::AlreadyThere));
        assert!(matches!(cache.insert(key(3), &one), Insertion::Done));
        let there: Vec<u8> = (0..5).filter(|number| is_there(&cache, *number)).collect();
        assert_eq!(there, [0, 2, 3]);
        assert!(cache.look_again(&key(1)).is_none());
        assert!(cache.look_again(&key(0)).is_some(), "in place of a miss");
        let figures = cache.metrics().expect("counted");
        assert_eq!((figures.entries, figures.evictions), (3, 1));
        assert_eq!((figures.hits, figures.misses), (1 + 3 + 1, 2 - 1));
        assert_eq!((figures.bytes, figures.capacity), (3 * one.byte_size(), 3 * one.byte_size()));
    }

    #[test]
    fn an_entry_that_is_too_large_is_refused_without_evictions() {
        let (small, large) = (entry(1), entry(10_000));
        let cache = LocalCache::new(large.byte_size() - 1);
        assert!(matches!(cache.insert(key(0), &small), Insertion::Done));
        let Insertion::Refused(refusal) = cache.insert(key(1), &large) else {
            panic!("it does not fit")
        };
        let (size, limit) = (large.byte_size(), large.byte_size() - 1);
        assert_eq!(
            refusal.to_string(),
            format!("Requested byte_size: {size} is greater than total cache size: {limit}")
        );
        assert!(is_there(&cache, 0) && !is_there(&cache, 1));
    }

    /// A list of all that is there, oldest first: slow, and obviously right.
    #[derive(Default)]
    struct Model(Vec<(u8, usize)>);

    impl Model {
        fn insert(&mut self, number: u8, size: usize, capacity: usize) {
            if size > capacity || self.0.iter().any(|(n, _)| *n == number) {
                return;
            }
            while self.bytes() + size > capacity {
                self.0.remove(0);
            }
            self.0.push((number, size));
        }

        fn look_up(&mut self, number: u8) -> bool {
            let at = self.0.iter().position(|(n, _)| *n == number);
            let found = at.map(|at| self.0.remove(at));
            self.0.extend(found);
            found.is_some()
        }

        fn bytes(&self) -> usize {
            self.0.iter().map(|(_, size)| size).sum()
        }
    }

    proptest! {
        #[test]
        fn the_cache_never_exceeds_its_size(
            capacity in 0usize..4000,
            steps in proptest::collection::vec((any::<bool>(), 0u8..12, 0usize..1500), 1..200),
        ) {
            let cache = LocalCache::new(capacity);
            let mut model = Model::default();
            for (inserts, number, bytes) in steps {
                if inserts {
                    let entry = entry(bytes);
                    cache.insert(key(number), &entry);
                    model.insert(number, entry.byte_size(), capacity);
                } else {
                    prop_assert_eq!(is_there(&cache, number), model.look_up(number));
                }
                let figures = cache.metrics().expect("counted");
                prop_assert!(figures.bytes <= capacity);
                prop_assert_eq!((figures.bytes, figures.entries), (model.bytes(), model.0.len()));
            }
        }
    }
}

//! The response cache of a library.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use galatea_response_cache::{
    CacheKey, Entry, Insertion, LongWork, LookUp, OnLookUp, Refusal, ResponseCache, decode, encode,
};
use galatea_telemetry::{
    LineLimit,
    families::RESPONSE_CACHE_ERRORS,
    metrics::{CacheMetrics, Figures},
};
use galatea_types::{Error, Result};

use crate::{
    entry::MAX_BYTES,
    lanes::{Lane, Store},
    library::{CacheLibrary, CacheSettings},
};

/// Threads that call the library.
const LANES: u64 = 4;

/// Responses in a library. Its threads call it: see the crate.
pub struct LibraryCache {
    lanes: Vec<Lane>,
    counted: Arc<CountedLibrary>,
    path: PathBuf,
    long_work: LongWork,
}

/// The library, with what went wrong.
struct CountedLibrary {
    name: String,
    library: CacheLibrary,
    look_up_errors: AtomicU64,
    insertion_errors: AtomicU64,
    errors: LineLimit,
}

impl LibraryCache {
    /// Opens the library of a cache, and starts its threads. Blocks as long as the library takes to begin.
    ///
    /// # Errors
    /// `InvalidArg` if there is no library; why it cannot be opened; or its own error.
    pub fn open(settings: &CacheSettings) -> Result<Self> {
        let path = settings.library()?;
        let library = CacheLibrary::open(&path, settings)?;
        let name = settings.name.clone();
        let told = name.clone();
        let errors = LineLimit::new(move |count| {
            log::error!("response cache '{told}': {count} more errors that were not logged");
        });
        let (look_up_errors, insertion_errors) = Default::default();
        let counted =
            Arc::new(CountedLibrary { name, library, look_up_errors, insertion_errors, errors });
        let start = |_| Lane::start(counted.clone());
        let lanes = (0..LANES).map(start).collect::<std::io::Result<_>>();
        let lanes = lanes.map_err(|error| {
            Error::internal(format!("failed to start a thread of the response cache: {error}"))
        })?;
        Ok(Self { lanes, counted, path, long_work: LongWork::default() })
    }

    /// Returns the path of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lane(&self, key: &CacheKey) -> Option<&Lane> {
        self.lanes.get(usize::try_from(key.short() % LANES).unwrap_or(0))
    }
}

impl CountedLibrary {
    fn log(&self, text: &str, error: &dyn fmt::Display) {
        if self.errors.admits() {
            log::error!("response cache '{}': {text}: {error}", self.name);
        }
    }
}

impl Store for CountedLibrary {
    fn look_up(&self, key: &CacheKey) -> Option<Entry> {
        let failed = |error: &dyn fmt::Display| {
            self.look_up_errors.fetch_add(1, Ordering::Relaxed);
            self.log("a look-up failed", error);
        };
        match self.library.look_up(key) {
            Ok(None) => None,
            Ok(Some(bytes)) => decode(bytes).inspect_err(|error| failed(error)).ok(),
            Err(error) => {
                failed(&error);
                None
            }
        }
    }

    fn insert(&self, key: &CacheKey, entry: &Entry) {
        if let Err(error) = self.library.insert(key, encode(entry)) {
            self.insertion_errors.fetch_add(1, Ordering::Relaxed);
            self.log(&format!("Failed to insert key {key} into response cache"), &error);
        }
    }

    fn gave_up(&self) {
        self.look_up_errors.fetch_add(1, Ordering::Relaxed);
        self.log("a look-up was given up", &"the library took longer than a second");
    }
}

impl ResponseCache for LibraryCache {
    fn look_up(&self, key: &CacheKey) -> LookUp {
        match self.lane(key) {
            Some(lane) if lane.is_prompt() => LookUp::Elsewhere,
            _ => {
                self.counted.look_up_errors.fetch_add(1, Ordering::Relaxed);
                LookUp::Miss
            }
        }
    }

    fn fetch(&self, key: CacheKey, then: OnLookUp) {
        let Some(lane) = self.lane(&key) else { return then(None) };
        if let Err(then) = lane.look_up(key, Instant::now(), then) {
            self.counted.look_up_errors.fetch_add(1, Ordering::Relaxed);
            then(None);
        }
    }

    fn insert(&self, key: CacheKey, entry: &Entry) -> Insertion {
        let (size, limit) = (entry.byte_size(), MAX_BYTES);
        if size > limit {
            return Insertion::Refused(Refusal { size, limit });
        }
        match self.lane(&key).is_some_and(|lane| lane.insert(key, entry)) {
            true => Insertion::Done,
            false => {
                self.counted.insertion_errors.fetch_add(1, Ordering::Relaxed);
                Insertion::Lost
            }
        }
    }

    fn largest_entry(&self) -> usize {
        MAX_BYTES
    }

    fn long_work(&self) -> &LongWork {
        &self.long_work
    }

    /// Returns true: only the library knows who else uses its store.
    fn is_shared(&self) -> bool {
        true
    }

    fn metrics(&self) -> Option<CacheMetrics> {
        None
    }

    fn add_figures(&self, figures: &mut Figures) {
        let CountedLibrary { look_up_errors, insertion_errors, .. } = &*self.counted;
        for (operation, errors) in [("lookup", look_up_errors), ("insertion", insertion_errors)] {
            let count = errors.load(Ordering::Relaxed);
            figures.set_labelled(&RESPONSE_CACHE_ERRORS, operation, count);
        }
    }

    fn give_up_overdue(&self, now: Instant) {
        self.lanes.iter().for_each(|lane| _ = lane.give_up_overdue(now));
    }

    fn close(&self, deadline: Instant) {
        self.lanes.iter().for_each(Lane::close);
        let left = || deadline.saturating_duration_since(Instant::now());
        match self.lanes.iter().all(|lane| lane.wait(left())) {
            true => self.counted.library.close(),
            false => log::warn!("response cache '{}': a call did not return", self.counted.name),
        }
    }
}

impl fmt::Debug for LibraryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LibraryCache({:?}, {:?})", self.counted.name, self.path)
    }
}

//! The library of a cache, and the calls that it gets.

use std::{
    ffi::{CString, c_char},
    path::{Path, PathBuf},
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use galatea_response_cache::CacheKey;
use galatea_triton_c::{Hook, LibraryKind, Offer, Requirements, abi, objects::OBJECTS, text};
use galatea_types::{Code, Error, Result};
use serde_json::{Map, Value};

use crate::entry::{self, Entry};

/// The functions for caches.
pub static FUNCTIONS: Offer =
    Offer { name: "libgalatea-triton-cache.so", functions: OFFERED_FUNCTIONS };

galatea_triton_c::functions_offered! {
    static OFFERED_FUNCTIONS;
    done {
        "TRITONCACHE_ApiVersion" = entry::api_version;
        "TRITONCACHE_CacheEntryBufferCount" = entry::buffer_count;
        "TRITONCACHE_CacheEntryAddBuffer" = entry::add_buffer;
        "TRITONCACHE_CacheEntryGetBuffer" = entry::get_buffer;
        "TRITONCACHE_CacheEntrySetBuffer" = entry::set_buffer;
        "TRITONCACHE_Copy" = entry::copy;
    }
    unsupported { "TRITONCACHE_CacheEntryNew" "TRITONCACHE_CacheEntryDelete" }
}

/// All hooks of a cache: each is required.
const HOOKS: [&str; 4] = [
    "TRITONCACHE_CacheInitialize",
    "TRITONCACHE_CacheFinalize",
    "TRITONCACHE_CacheLookup",
    "TRITONCACHE_CacheInsert",
];

/// The libraries of caches.
pub static LIBRARIES: LibraryKind = LibraryKind {
    prefix: "libtritoncache_",
    interface: "TRITONCACHE",
    offered: abi::CACHE_VERSION,
    requirements: Requirements { kind: "Triton cache", must_define: &HOOKS },
    offers: &[&OBJECTS, &FUNCTIONS],
};

type InitializeHook = Hook<(*mut *mut abi::Cache, *const c_char)>;
type FinalizeHook = Hook<(*mut abi::Cache,)>;
type EntryHook =
    Hook<(*mut abi::Cache, *const c_char, *mut abi::CacheEntry, *mut abi::CacheAllocator)>;

/// The cache to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Its name, for example `local`.
    pub name: String,
    /// The folder that has a folder for each cache.
    pub directory: PathBuf,
    /// Its settings, in their order. The last one of a name counts.
    pub settings: Vec<(String, String)>,
}

impl CacheSettings {
    /// Returns the library of the cache.
    ///
    /// # Errors
    /// `InvalidArg` if there is none, with Triton's text.
    pub fn library(&self) -> Result<PathBuf> {
        LIBRARIES.find(&self.directory, &self.name).ok_or_else(|| {
            let (file, folder) = (LIBRARIES.file_name(&self.name), self.directory.display());
            Error::invalid_arg(format!("unable to find '{file}' for cache. Searched: {folder}"))
        })
    }

    /// Returns the settings in the form that libraries get, an object of texts.
    fn to_json(&self) -> String {
        let pairs = self.settings.iter().map(|(name, value)| (name.clone(), Value::from(&**value)));
        Value::Object(pairs.collect::<Map<_, _>>()).to_string()
    }
}

/// An open cache of a library. It is closed when this is dropped; the library stays.
pub(crate) struct CacheLibrary {
    cache: *mut abi::Cache,
    finalize: FinalizeHook,
    look_up: EntryHook,
    insert: EntryHook,
    /// Calls that run now.
    running: AtomicUsize,
    is_closed: AtomicBool,
}

// SAFETY: the interface lets a cache be used by all threads.
unsafe impl Send for CacheLibrary {}
// SAFETY: as above.
unsafe impl Sync for CacheLibrary {}

impl CacheLibrary {
    /// Opens the library at `path` and makes its cache. Blocks as long as the library does.
    ///
    /// # Errors
    /// Why the library cannot be opened, or its own error.
    pub fn open(path: &Path, settings: &CacheSettings) -> Result<Self> {
        let library = LIBRARIES.open(path)?;
        let missing = || Error::internal(format!("'{}' has lost a function", path.display()));
        let [initialize, finalize, look_up, insert] = HOOKS;
        // SAFETY: the interface gives the functions of these names these types.
        let (initialize, finalize, look_up, insert) = unsafe {
            (
                InitializeHook::find(&library, initialize).ok_or_else(missing)?,
                FinalizeHook::find(&library, finalize).ok_or_else(missing)?,
                EntryHook::find(&library, look_up).ok_or_else(missing)?,
                EntryHook::find(&library, insert).ok_or_else(missing)?,
            )
        };
        let (mut cache, config) = (ptr::null_mut(), text::to_c(&settings.to_json()));
        // SAFETY: a terminated text, and a place for the result.
        unsafe { initialize.call((&raw mut cache, config.as_ptr())) }?;
        if cache.is_null() {
            let text = format!("'{}' has made no cache, and told no error", path.display());
            return Err(Error::internal(text));
        }
        let (running, is_closed) = Default::default();
        Ok(Self { cache, finalize, look_up, insert, running, is_closed })
    }

    /// Returns the bytes that are stored under a key; `None` if there are none.
    ///
    /// # Errors
    /// The library's own.
    pub fn look_up(&self, key: &CacheKey) -> Result<Option<Vec<u8>>> {
        let entry = Entry::empty()?;
        match self.call(&self.look_up, key, &entry) {
            Ok(()) => entry.into_found().map(Some),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores bytes under a key. A key that is there already keeps its bytes.
    ///
    /// # Errors
    /// The library's own.
    pub fn insert(&self, key: &CacheKey, bytes: Vec<u8>) -> Result<()> {
        let entry = Entry::holding(bytes)?;
        match self.call(&self.insert, key, &entry) {
            Err(error) if error.code() != Code::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn call(&self, hook: &EntryHook, key: &CacheKey, entry: &Entry) -> Result<()> {
        let key: CString = text::to_c(&key.to_string());
        let allocator = entry.allocator()?;
        self.running.fetch_add(1, Ordering::SeqCst);
        let result = match self.is_closed.load(Ordering::SeqCst) {
            true => Err(Error::unavailable("the response cache is closed")),
            // SAFETY: `close` does not close the cache while a call is counted; the handles are valid during the call.
            false => unsafe { hook.call((self.cache, key.as_ptr(), entry.handle(), allocator)) },
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Closes the cache, unless a call still runs. Later calls are refused.
    pub fn close(&self) {
        let was_closed = self.is_closed.swap(true, Ordering::SeqCst);
        if was_closed || self.running.load(Ordering::SeqCst) > 0 {
            return;
        }
        // SAFETY: no call of the cache runs, and none begins.
        if let Err(error) = unsafe { self.finalize.call((self.cache,)) } {
            log::warn!("the response cache could not be closed: {error}");
        }
    }
}

impl Drop for CacheLibrary {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_the_folder_of_its_cache() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = |name: &str| CacheSettings {
            name: name.to_owned(),
            directory: folder.path().to_owned(),
            settings: vec![
                ("size".to_owned(), "1".to_owned()),
                ("size".to_owned(), "2".to_owned()),
            ],
        };
        std::fs::create_dir(folder.path().join("own")).expect("folder");
        let path = folder.path().join("own/libtritoncache_own.so");
        std::fs::write(&path, "").expect("file");
        assert_eq!(cache("own").library().expect("found"), path);
        assert_eq!(cache("own").to_json(), r#"{"size":"2"}"#);
        for name in ["other", "../own", "", ".", "..", "o\0n"] {
            let error = cache(name).library().expect_err("none");
            let text = format!("unable to find 'libtritoncache_{name}.so' for cache. Searched: ");
            assert!(error.message().starts_with(&text), "{error}");
        }
    }
}

//! The registry of backends, and the way each is opened.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use galatea_backend::{Backend, Inspector};
use galatea_types::Result;

type OpenFn<T> = Box<dyn Fn() -> Result<Arc<T>> + Send + Sync>;
type SearchFn<T> = Box<dyn Fn(&str) -> Option<Result<Arc<T>>> + Send + Sync>;
type PlacesFn = Box<dyn Fn(&str) -> Vec<PathBuf> + Send + Sync>;

/// The backends of the program. Each is opened when the first model needs it.
pub type BackendRegistry = Registry<dyn Backend>;

/// The inspectors of model files, by the names of their backends.
pub type InspectorRegistry = Registry<dyn Inspector>;

/// A value for each backend, by its name, created when it is first needed.
pub struct Registry<T: ?Sized> {
    known: BTreeMap<String, OpenFn<T>>,
    /// Searched last, and not named to users.
    unlisted: BTreeMap<String, OpenFn<T>>,
    /// Called for names that are not registered.
    search: Option<SearchFn<T>>,
    /// The files that `search` looks for, for people.
    places: Option<PlacesFn>,
    /// Inspectors of models whose backends take long to open.
    inspectors: BTreeMap<String, Arc<dyn Inspector>>,
}

impl<T: ?Sized> Default for Registry<T> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            search: None,
            places: None,
            inspectors: BTreeMap::new(),
        }
    }
}

impl<T: ?Sized> Registry<T> {
    /// Adds a backend. `open` runs when the first model needs it, and again after a failure.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        open: impl Fn() -> Result<Arc<T>> + Send + Sync + 'static,
    ) {
        self.known.insert(name.into(), Box::new(open));
    }

    /// Adds a backend for tests. No message names it to users, and a backend of the same name that the search finds comes
    /// first.
    pub fn register_unlisted(
        &mut self,
        name: impl Into<String>,
        open: impl Fn() -> Result<Arc<T>> + Send + Sync + 'static,
    ) {
        self.unlisted.insert(name.into(), Box::new(open));
    }

    /// Sets the search for backends that are not registered, e.g. in a folder. `search` returns `None` if there is none. The name
    /// is `libtriton_NAME.so` for a model that is to run by that library of a backend. `places` returns the files that are
    /// looked for, for the error of a backend that is nowhere.
    pub fn search(
        &mut self,
        places: impl Fn(&str) -> Vec<PathBuf> + Send + Sync + 'static,
        search: impl Fn(&str) -> Option<Result<Arc<T>>> + Send + Sync + 'static,
    ) {
        self.places = Some(Box::new(places));
        self.search = Some(Box::new(search));
    }

    /// Lets `inspector` check models of a backend before the backend is opened. For backends that take minutes to open and
    /// complete no configuration.
    pub fn inspect_first(&mut self, name: impl Into<String>, inspector: Arc<dyn Inspector>) {
        self.inspectors.insert(name.into(), inspector);
    }

    pub(crate) fn inspector(&self, name: &str) -> Option<Arc<dyn Inspector>> {
        self.inspectors.get(name).cloned()
    }

    pub(crate) fn open(&self, name: &str) -> Option<Result<Arc<T>>> {
        let known = self.known.get(name).map(|open| open());
        let search = || self.search.as_ref().and_then(|search| search(name));
        known.or_else(search).or_else(|| self.unlisted.get(name).map(|open| open()))
    }

    /// Returns true if users know a backend by this name.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns the files that were looked for to find a backend that is not registered.
    pub(crate) fn places(&self, name: &str) -> Vec<PathBuf> {
        self.places.as_ref().map(|places| places(name)).unwrap_or_default()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
}

impl<T: ?Sized> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

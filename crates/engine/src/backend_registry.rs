//! Which backends there are, and how each is opened.

use std::{collections::BTreeMap, fmt, sync::Arc};

use galatea_backend::Backend;
use galatea_types::Result;

type OpenBackend = Box<dyn Fn() -> Result<Arc<dyn Backend>> + Send + Sync>;
type SearchBackend = Box<dyn Fn(&str) -> Option<Result<Arc<dyn Backend>>> + Send + Sync>;

/// The backends the program offers, each opened when the first model needs it.
#[derive(Default)]
pub struct BackendRegistry {
    known: BTreeMap<String, OpenBackend>,
    /// Asked for names that are not known.
    search: Option<SearchBackend>,
}

impl BackendRegistry {
    /// Adds a backend: `open` runs when the first model needs it, and again after a failure.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        open: impl Fn() -> Result<Arc<dyn Backend>> + Send + Sync + 'static,
    ) {
        self.known.insert(name.into(), Box::new(open));
    }

    /// How a backend that is not registered is found, e.g. in a folder of backends. `None`: it is not.
    pub fn search(
        &mut self,
        search: impl Fn(&str) -> Option<Result<Arc<dyn Backend>>> + Send + Sync + 'static,
    ) {
        self.search = Some(Box::new(search));
    }

    pub(crate) fn open(&self, name: &str) -> Option<Result<Arc<dyn Backend>>> {
        match self.known.get(name) {
            Some(open) => Some(open()),
            None => self.search.as_ref().and_then(|search| search(name)),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
}

impl fmt::Debug for BackendRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

//! The models that are ready, as requests find them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    },
};

use arc_swap::ArcSwap;
use galatea_types::{LockExt, Result};

use crate::{lifecycle::Lifecycle, look_up_error::LookUpError, served_model::ServedModel};

/// Ready versions of one model, by number.
pub(crate) type ReadyVersions = BTreeMap<i64, Arc<ServedModel>>;

/// Every ready model by name. Replaced whole at each change, so that looking one up takes no lock; the record of
/// each version's state changes with it.
pub(crate) struct ReadyModels {
    table: ArcSwap<HashMap<String, ReadyVersions>>,
    /// One change of `table` at a time. True once it is empty for good.
    is_closed: Mutex<bool>,
    lifecycle: Arc<Lifecycle>,
    /// A [`Stage`].
    stage: AtomicU8,
}

/// Whether requests of clients are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    Serving,
    /// The start failed: no request is ever taken.
    NotInitialized,
    Exiting,
}

impl ReadyModels {
    pub fn new(lifecycle: Arc<Lifecycle>) -> Self {
        Self {
            table: ArcSwap::default(),
            is_closed: Mutex::default(),
            lifecycle,
            stage: AtomicU8::new(Stage::Serving as u8),
        }
    }

    /// Refuses requests of clients, and loads, from now on.
    pub fn begin_exit(&self) {
        self.stage.store(Stage::Exiting as u8, Ordering::Release);
    }

    pub fn is_exiting(&self) -> bool {
        self.is_at(Stage::Exiting)
    }

    /// The server could not be started: it answers that it is not ready, to everything.
    pub fn fail_start(&self) {
        self.stage.store(Stage::NotInitialized as u8, Ordering::Release);
    }

    /// Whether requests of clients are taken.
    pub fn check_serving(&self) -> Result<(), LookUpError> {
        if self.is_at(Stage::Serving) {
            return Ok(());
        }
        Err(if self.is_exiting() { LookUpError::Exiting } else { LookUpError::NotInitialized })
    }

    fn is_at(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Acquire) == stage as u8
    }

    /// The version a client asked for, or the highest. Takes no lock.
    pub fn for_client(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        self.check_serving()?;
        self.for_model(name, version)
    }

    /// [`ReadyModels::for_client`] for requests that models make themselves: those in flight are finished while
    /// the server is exiting.
    pub fn for_model(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        let table = self.table.load();
        let versions = table.get(name);
        let found = match version {
            None => versions.and_then(|v| v.last_key_value()).map(|(_, model)| model),
            Some(v) => versions.and_then(|versions| versions.get(&v)),
        };
        found.cloned().ok_or_else(|| self.not_ready(name, version).into())
    }

    fn not_ready(&self, name: &str, version: Option<i64>) -> LookUpError {
        let (known, model) = (self.lifecycle.versions(name), name.to_owned());
        match version {
            _ if known.is_empty() => LookUpError::UnknownModel { model },
            None => LookUpError::NoVersion { model },
            Some(version) if known.iter().all(|(k, _)| *k != version) => {
                LookUpError::UnknownVersion { model, version }
            }
            Some(version) => LookUpError::NotReady { model, version },
        }
    }

    /// Whether any version of this model is ready.
    pub fn contains(&self, name: &str) -> bool {
        self.table.load().contains_key(name)
    }

    /// Whether versions of this model are ready, each with an instance that works.
    pub fn works(&self, name: &str) -> bool {
        let table = self.table.load();
        table.get(name).is_some_and(|versions| versions.values().all(|model| model.is_ready()))
    }

    /// The versions of a model that are ready and work.
    pub fn working(&self, name: &str) -> ReadyVersions {
        let mut versions = self.table.load().get(name).cloned().unwrap_or_default();
        versions.retain(|_, model| model.is_ready());
        versions
    }

    /// Every ready version, by name and number.
    pub fn all(&self) -> Vec<Arc<ServedModel>> {
        let table = self.table.load();
        let mut names: Vec<_> = table.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        names.into_iter().flat_map(|(_, versions)| versions.values().cloned()).collect()
    }

    /// Whether every ready version has an instance that works.
    pub fn all_work(&self) -> bool {
        self.table.load().values().flat_map(BTreeMap::values).all(|model| model.is_ready())
    }

    /// Puts `ready` in the place of the versions that are ready now. Those are unloaded once their last request
    /// has left.
    pub fn replace(&self, name: &str, ready: ReadyVersions) {
        let is_closed = self.lock();
        for (&version, model) in &ready {
            self.lifecycle.loaded(name, version, model.generation());
            if *is_closed {
                self.lifecycle.unloading(name, version, model.generation());
            }
        }
        if *is_closed {
            return;
        }
        let mut table = HashMap::clone(&self.table.load());
        let old = if ready.is_empty() {
            table.remove(name)
        } else {
            table.insert(name.to_owned(), ready)
        };
        let is_kept = |version: &i64, model: &Arc<ServedModel>| {
            let now = table.get(name).and_then(|versions| versions.get(version));
            now.is_some_and(|now| Arc::ptr_eq(now, model))
        };
        for (version, model) in old.iter().flatten().filter(|(v, m)| !is_kept(v, m)) {
            self.lifecycle.unloading(name, *version, model.generation());
        }
        self.table.store(Arc::new(table));
    }

    /// Unloads every model once its last request has left, and from now on what finishes loading at once.
    pub fn close(&self) {
        let mut is_closed = self.lock();
        *is_closed = true;
        let old = self.table.swap(Arc::default());
        for (name, versions) in old.iter() {
            for (version, model) in versions {
                self.lifecycle.unloading(name, *version, model.generation());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_closed.lock_unpoisoned()
    }
}

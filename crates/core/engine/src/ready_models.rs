//! The ready models, as requests find them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    },
};

use arc_swap::ArcSwap;
use galatea_types::{Error, LockExt, Result};

use crate::{lifecycle::Lifecycle, model_id::ModelId, served_model::ServedModel};

/// Ready versions of one model, by number.
pub(crate) type ReadyVersions = BTreeMap<i64, Arc<ServedModel>>;

/// All ready models by name. The table is replaced as a whole at each change, so a look-up takes no lock. The records of the
/// versions' states change with it.
pub(crate) struct ReadyModels {
    table: ArcSwap<Table>,
    has_namespaces: bool,
    /// Locked by a change of `table`, so that there is one at a time. True once the table is empty for good.
    is_closed: Mutex<bool>,
    lifecycle: Arc<Lifecycle>,
    /// A [`ReadyStage`].
    stage: AtomicU8,
}

type Table = HashMap<Arc<str>, ModelVersions>;

/// The models with one name: at most one if names are unique in the server. With namespaces, includes models that are known but
/// not ready; empty after all were unloaded.
#[derive(Clone, Default)]
struct ModelVersions(BTreeMap<Arc<str>, ReadyVersions>);

impl ModelVersions {
    /// Returns the versions of the only model with that name.
    fn versions(&self) -> Option<&ReadyVersions> {
        if self.0.len() == 1 { self.0.values().next() } else { None }
    }

    fn models(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.0.values().flat_map(BTreeMap::values)
    }
}

/// The stage that decides if requests of clients are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum ReadyStage {
    Serving,
    /// The start failed: no request is ever taken.
    NotInitialized,
    Exiting,
}

impl ReadyModels {
    /// Creates an empty table. `has_namespaces`: several models may have one name.
    pub fn new(lifecycle: Arc<Lifecycle>, has_namespaces: bool) -> Self {
        Self {
            table: ArcSwap::default(),
            has_namespaces,
            is_closed: Mutex::default(),
            lifecycle,
            stage: AtomicU8::new(ReadyStage::Serving as u8),
        }
    }

    /// Refuses requests of clients, and loads, from now on.
    pub fn begin_exit(&self) {
        self.stage.store(ReadyStage::Exiting as u8, Ordering::Release);
    }

    pub fn is_exiting(&self) -> bool {
        self.is_at(ReadyStage::Exiting)
    }

    /// Records that the start failed: every call is answered with "not ready".
    pub fn fail_start(&self) {
        self.stage.store(ReadyStage::NotInitialized as u8, Ordering::Release);
    }

    pub fn check_serving(&self) -> Result<()> {
        if self.is_at(ReadyStage::Serving) {
            return Ok(());
        }
        let why = if self.is_exiting() { "Server exiting" } else { "Server not ready" };
        Err(Error::unavailable(why))
    }

    fn is_at(&self, stage: ReadyStage) -> bool {
        self.stage.load(Ordering::Acquire) == stage as u8
    }

    /// Returns the version that a client asked for, or the highest. Takes no lock.
    pub fn for_client(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        self.check_serving()?;
        self.for_model(name, version)
    }

    /// Does [`ReadyModels::for_client`] for requests of models: those in flight are finished while the server is exiting.
    pub fn for_model(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        let table = self.table.load();
        let versions = table.get(name).and_then(ModelVersions::versions);
        let found = versions.and_then(|versions| choose(versions, version));
        found.cloned().ok_or_else(|| match self.identify(name) {
            Ok(id) => self.not_ready(&id, version),
            Err(error) => error,
        })
    }

    /// Returns the version of exactly this model, or the highest.
    pub fn version_of(&self, id: &ModelId, version: Option<i64>) -> Option<Arc<ServedModel>> {
        let table = self.table.load();
        choose(table.get(&id.name)?.0.get(&id.namespace)?, version).cloned()
    }

    /// Returns the model that a client means by a name. The texts are Triton's, because clients match on them.
    fn identify(&self, name: &str) -> Result<ModelId> {
        if !self.has_namespaces {
            return Ok(ModelId::global(name));
        }
        let table = self.table.load();
        let Some(ModelVersions(models)) = table.get(name) else {
            let text = format!("Request for unknown model: '{name}' is not found");
            return Err(Error::invalid_arg(text));
        };
        match (models.len(), models.first_key_value()) {
            (_, None) => Err(Error::not_found(format!(
                "Identifier of model '{name}' is not found in global map"
            ))),
            (1, Some((namespace, _))) => Ok(ModelId::new(namespace.clone(), name)),
            (count, _) => Err(Error::invalid_arg(format!(
                "There are {count} identifiers of model '{name}' in global map, model namespace must be provided to resolve \
                 ambiguity."
            ))),
        }
    }

    /// Returns the model that a step of an ensemble names: the one in the ensemble's namespace, else the only one.
    pub fn identify_step(&self, ensemble: &ModelId, name: &str) -> Option<ModelId> {
        let preferred = ensemble.sibling(name);
        if !self.has_namespaces || self.is_known(&preferred) {
            return Some(preferred);
        }
        self.identify(name).ok()
    }

    /// Returns true, with namespaces, if a name may mean this model.
    pub fn is_known(&self, id: &ModelId) -> bool {
        self.table.load().get(&id.name).is_some_and(|named| named.0.contains_key(&id.namespace))
    }

    /// Lets a name mean this model from now on, ready or not.
    pub fn register(&self, id: &ModelId) {
        if self.has_namespaces && !self.is_known(id) {
            self.change(|table| {
                let named = table.entry(id.name.clone()).or_default();
                named.0.entry(id.namespace.clone()).or_default();
            });
        }
    }

    /// Stops a name from meaning this model. The existence of a repository's model is remembered.
    pub fn deregister(&self, id: &ModelId) {
        if !self.has_namespaces || !self.is_known(id) {
            return;
        }
        self.change(|table| {
            let Some(ModelVersions(models)) = table.get_mut(&id.name) else { return };
            models.remove(&id.namespace);
            if models.is_empty() && id.namespace.is_empty() {
                table.remove(&id.name);
            }
        });
    }

    /// Forgets a name that means no model any more.
    pub fn forget_name(&self, name: &str) {
        let means_none = |table: &Table| table.get(name).is_some_and(|named| named.0.is_empty());
        if means_none(&self.table.load()) {
            self.change(|table| {
                if means_none(table) {
                    table.remove(name);
                }
            });
        }
    }

    fn not_ready(&self, id: &ModelId, version: Option<i64>) -> Error {
        let known = self.lifecycle.versions(id);
        let head = format!("Request for unknown model: '{id}'");
        match version {
            _ if known.is_empty() && !self.lifecycle.has_no_version(id) => {
                Error::not_found(format!("{head} is not found"))
            }
            None => Error::not_found(format!("{head} has no available versions")),
            Some(version) if known.iter().all(|(k, _)| *k != version) => {
                Error::not_found(format!("{head} version {version} is not found"))
            }
            Some(version) => {
                Error::unavailable(format!("{head} version {version} is not at ready state"))
            }
        }
    }

    /// Returns true if any version of this model is ready.
    pub fn contains(&self, id: &ModelId) -> bool {
        self.version_of(id, None).is_some()
    }

    /// Returns true if versions of this model are ready, each with a working instance.
    pub fn works(&self, id: &ModelId) -> bool {
        let versions = self.versions(id);
        !versions.is_empty() && versions.values().all(|model| model.is_ready())
    }

    /// Returns the ready versions of a model with a working instance.
    pub fn working(&self, id: &ModelId) -> ReadyVersions {
        let mut versions = self.versions(id);
        versions.retain(|_, model| model.is_ready());
        versions
    }

    fn versions(&self, id: &ModelId) -> ReadyVersions {
        let table = self.table.load();
        let versions = table.get(&id.name).and_then(|named| named.0.get(&id.namespace));
        versions.cloned().unwrap_or_default()
    }

    pub fn all(&self) -> Vec<Arc<ServedModel>> {
        let table = self.table.load();
        let mut models: Vec<_> = table.values().flat_map(ModelVersions::models).cloned().collect();
        models.sort_by(|a, b| (&a.id, a.version).cmp(&(&b.id, b.version)));
        models
    }

    /// Visits every ready version, in no order.
    pub fn for_each(&self, visit: impl FnMut(&Arc<ServedModel>)) {
        self.table.load().values().flat_map(ModelVersions::models).for_each(visit);
    }

    /// Returns true if every ready version has a working instance.
    pub fn all_work(&self) -> bool {
        self.table.load().values().flat_map(ModelVersions::models).all(|model| model.is_ready())
    }

    /// Replaces the ready versions with `ready`. The previous ones are unloaded after their last requests.
    pub fn replace(&self, id: &ModelId, ready: ReadyVersions) {
        let is_closed = self.lock();
        for (&version, model) in &ready {
            self.lifecycle.loaded(id, version, model.generation);
            if *is_closed {
                self.lifecycle.unloading(id, version, model.generation);
            }
        }
        if *is_closed {
            return;
        }
        let old = self.versions(id);
        let is_kept = |version: &i64, model: &Arc<ServedModel>| {
            ready.get(version).is_some_and(|now| Arc::ptr_eq(now, model))
        };
        let replaced: Vec<_> = old.iter().filter(|(v, m)| !is_kept(v, m)).collect();
        for (version, model) in &replaced {
            self.lifecycle.unloading(id, **version, model.generation);
        }
        let mut table = Table::clone(&self.table.load());
        if !ready.is_empty() {
            table.entry(id.name.clone()).or_default().0.insert(id.namespace.clone(), ready);
        } else if !self.has_namespaces {
            table.remove(&id.name);
        } else if let Some(known) = table.get_mut(&id.name).and_then(|n| n.0.get_mut(&id.namespace))
        {
            known.clear();
        }
        self.table.store(Arc::new(table));
        replaced.iter().for_each(|(_, model)| model.scheduler.expect_no_more());
        self.lifecycle.touch();
    }

    /// Unloads every model after its last request. From now on, models that finish loading are unloaded at once.
    pub fn close(&self) {
        let mut is_closed = self.lock();
        *is_closed = true;
        let old = self.table.swap(Arc::default());
        for model in old.values().flat_map(ModelVersions::models) {
            self.lifecycle.unloading(&model.id, model.version, model.generation);
            model.scheduler.expect_no_more();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let is_closed = self.lock();
        if !*is_closed {
            let mut table = Table::clone(&self.table.load());
            change(&mut table);
            self.table.store(Arc::new(table));
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_closed.lock_unpoisoned()
    }
}

fn choose(versions: &ReadyVersions, version: Option<i64>) -> Option<&Arc<ServedModel>> {
    match version {
        None => versions.last_key_value().map(|(_, model)| model),
        Some(version) => versions.get(&version),
    }
}

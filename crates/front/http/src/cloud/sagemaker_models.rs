//! The models that SageMaker has loaded, by its own names.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_types::LockExt;

/// The models of SageMaker's multi-model mode. Copies share their state.
#[derive(Clone, Debug)]
pub struct SageMakerModels {
    folder: Arc<Path>,
    table: Arc<Mutex<BTreeMap<String, Model>>>,
}

#[derive(Debug)]
struct Model {
    loaded: Loaded,
    state: State,
}

/// A model as the engine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    /// The model's name in the engine.
    pub model: String,
    /// The place of the model's repository.
    pub place: String,
}

/// The state of a model. Clients see only ready models; the name is taken in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Loading,
    Ready,
    Unloading,
}

impl SageMakerModels {
    /// Returns an empty table. All models that are loaded later must be below `folder`.
    pub fn below(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into().into(), table: Arc::default() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes a name for a model that will be loaded. Returns `false` if the name is taken.
    pub(super) fn begin(&self, name: &str, loaded: Loaded) -> bool {
        match self.table.lock_unpoisoned().entry(name.to_owned()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(Model { loaded, state: State::Loading });
                true
            }
        }
    }

    /// Marks the model as ready, also after a refused unload.
    pub(super) fn set_ready(&self, name: &str) {
        if let Some(model) = self.table.lock_unpoisoned().get_mut(name) {
            model.state = State::Ready;
        }
    }

    /// Returns a ready model and marks it as unloading, so that only one caller unloads it.
    pub(super) fn begin_unload(&self, name: &str) -> Option<Loaded> {
        let mut table = self.table.lock_unpoisoned();
        let model = table.get_mut(name).filter(|model| model.state == State::Ready)?;
        model.state = State::Unloading;
        Some(model.loaded.clone())
    }

    pub(super) fn remove(&self, name: &str) {
        self.table.lock_unpoisoned().remove(name);
    }

    pub(super) fn get(&self, name: &str) -> Option<Loaded> {
        let table = self.table.lock_unpoisoned();
        let model = table.get(name).filter(|model| model.state == State::Ready)?;
        Some(model.loaded.clone())
    }

    pub(super) fn all(&self) -> Vec<(String, Loaded)> {
        let table = self.table.lock_unpoisoned();
        let ready = table.iter().filter(|(_, model)| model.state == State::Ready);
        ready.map(|(name, model)| (name.clone(), model.loaded.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_reserved_until_the_unload_and_listed_while_ready() {
        let models = SageMakerModels::below("/models");
        let loaded = Loaded { model: "m".to_owned(), place: "/models/a".to_owned() };
        assert!(models.begin("a", loaded.clone()));
        assert!(!models.begin("a", loaded.clone()), "it is being loaded");
        assert_eq!((models.get("a"), models.begin_unload("a")), (None, None));
        models.set_ready("a");
        assert_eq!(models.get("a"), Some(loaded.clone()));
        assert_eq!(models.all(), [("a".to_owned(), loaded.clone())]);
        assert_eq!(models.begin_unload("a"), Some(loaded.clone()));
        assert_eq!(models.begin_unload("a"), None, "someone does it already");
        assert_eq!((models.get("a"), models.all()), (None, vec![]));
        assert!(!models.begin("a", loaded.clone()), "it is not gone yet");
        models.remove("a");
        assert!(models.begin("a", loaded));
    }
}

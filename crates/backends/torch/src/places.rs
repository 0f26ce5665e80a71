//! The modules or containers at the places of a model's instances.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use galatea_types::{LockExt, Result};

use crate::{load_error::no_instance_group, torch::ModuleDevice};

/// Modules or containers by their places.
pub(crate) struct Places<T> {
    all: BTreeMap<ModuleDevice, Loaded<T>>,
    /// True if instances would see each other's state in a shared one, so that each needs its own.
    are_apart: fn(&T) -> bool,
}

struct Loaded<T> {
    shared: Arc<T>,
    /// True if an instance has taken a module or container with state.
    is_taken: Mutex<bool>,
}

impl<T> Places<T> {
    pub fn load(
        places: &[ModuleDevice],
        are_apart: fn(&T) -> bool,
        load: impl Fn(ModuleDevice) -> Result<T>,
    ) -> Result<Self> {
        let load = |&place: &ModuleDevice| {
            let (shared, is_taken) = (Arc::new(load(place)?), Mutex::new(false));
            Ok((place, Loaded { shared, is_taken }))
        };
        Ok(Self { all: places.iter().map(load).collect::<Result<_>>()?, are_apart })
    }

    pub fn places(&self) -> impl Iterator<Item = &ModuleDevice> {
        self.all.keys()
    }

    /// Returns the first one loaded.
    pub fn first(&self) -> Option<&T> {
        self.all.values().next().map(|loaded| &*loaded.shared)
    }

    pub fn have_state(&self) -> bool {
        self.all.values().any(|loaded| (self.are_apart)(&loaded.shared))
    }

    /// Returns the one for an instance. With state, and unless `shares_state`, each instance gets its own, which `load`
    /// makes. Otherwise all share one.
    pub fn take(
        &self,
        model: &str,
        place: ModuleDevice,
        shares_state: bool,
        load: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let loaded = self.all.get(&place).ok_or_else(|| no_instance_group(model, place))?;
        let is_shared = !(self.are_apart)(&loaded.shared) || shares_state;
        if is_shared || !std::mem::replace(&mut *loaded.is_taken.lock_unpoisoned(), true) {
            return Ok(loaded.shared.clone());
        }
        load().map(Arc::new)
    }
}

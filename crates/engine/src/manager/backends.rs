//! The backends that are open, and their settings.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use galatea_backend::Backend;
use galatea_config::{Diagnostic, backend_advice};
use galatea_types::{Error, LockExt, Result};

use crate::{backend_registry::BackendRegistry, backend_settings::BackendSettings};

/// Opens each backend when it is first needed.
pub(super) struct Backends {
    registry: BackendRegistry,
    opened: Mutex<BTreeMap<String, Arc<dyn Backend>>>,
    settings: BackendSettings,
}

impl Backends {
    pub fn new(registry: BackendRegistry, settings: BackendSettings) -> Self {
        Self { registry, opened: Mutex::default(), settings }
    }

    /// The backend of this name, opened now if it was not yet. A failure is not remembered: the next load
    /// tries again.
    pub fn open(&self, name: &str) -> Result<Arc<dyn Backend>> {
        let mut opened = self.opened.lock_unpoisoned();
        if let Some(backend) = opened.get(name) {
            return Ok(backend.clone());
        }
        let backend = self.registry.open(name).unwrap_or_else(|| Err(self.unknown(name)))?;
        opened.insert(name.to_owned(), backend.clone());
        Ok(backend)
    }

    fn unknown(&self, name: &str) -> Error {
        let known = self.registry.names().collect::<Vec<_>>().join(", ");
        let text = format!(
            "unable to find backend library for backend '{name}', try specifying runtime on the model \
             configuration. This server has the backends: {known}."
        );
        let found = Diagnostic::error(text.as_str())
            .with_advice(backend_advice(name, self.registry.names()))
            .about("backend");
        Error::invalid_arg(text).with_source(found)
    }

    /// Settings of one backend, with those for all.
    pub fn settings(&self, backend: &str) -> BTreeMap<String, String> {
        self.settings.of(backend)
    }
}

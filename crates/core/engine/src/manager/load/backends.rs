//! The open backends and their settings, and the completion of configurations.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use galatea_backend::{Backend, CompletionContext, Inspector};
use galatea_config::{ConfigDraft, Diagnostic, backend_advice};
use galatea_types::{Error, LockExt, Result};

use crate::{backend_registry::Registry, backend_settings::BackendSettings};

/// Opens each backend, or its inspector, when it is first needed.
pub(crate) struct Backends<T: ?Sized = dyn Backend> {
    registry: Registry<T>,
    opened: Mutex<BTreeMap<String, Arc<T>>>,
    pub settings: BackendSettings,
}

impl<T: ?Sized> Backends<T> {
    pub fn new(registry: Registry<T>, settings: BackendSettings) -> Self {
        Self { registry, opened: Mutex::default(), settings }
    }

    /// Returns the backend with this name, and opens it if necessary. A failure is not kept: the next load tries again.
    pub fn open(&self, name: &str) -> Result<Arc<T>> {
        let mut opened = self.opened.lock_unpoisoned();
        if let Some(backend) = opened.get(name) {
            return Ok(backend.clone());
        }
        let backend = self.registry.open(name).unwrap_or_else(|| Err(self.unknown(name)))?;
        opened.insert(name.to_owned(), backend.clone());
        Ok(backend)
    }

    /// Returns the inspector for models of a backend that is not open yet, if opening it takes long.
    fn inspector_before_opening(&self, name: &str) -> Option<Arc<dyn Inspector>> {
        let inspector = self.registry.inspector(name)?;
        let is_open = self.opened.try_lock().is_ok_and(|opened| opened.contains_key(name));
        (!is_open).then_some(inspector)
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
}

/// Completes a configuration: a backend when models are loaded, an inspector when their files are only inspected.
pub(crate) enum Completer {
    Backend(Arc<dyn Backend>),
    Inspector(Arc<dyn Inspector>),
}

impl Completer {
    pub fn has_runtime(&self, runtime: &str) -> bool {
        match self {
            Self::Backend(backend) => backend.has_runtime(runtime),
            Self::Inspector(inspector) => inspector.has_runtime(runtime),
        }
    }

    /// Returns true for an inspector, because only a running server knows.
    pub fn can_use_gpus(&self) -> bool {
        match self {
            Self::Backend(backend) => backend.can_use_gpus(),
            Self::Inspector(_) => true,
        }
    }

    pub fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        match self {
            Self::Backend(backend) => backend.complete_config(config, context),
            Self::Inspector(inspector) => inspector.complete_config(config, context),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Completers<'a> {
    Backends(&'a Backends),
    Inspectors(&'a Backends<dyn Inspector>),
}

impl Completers<'_> {
    pub fn completer(&self, backend: &str) -> Result<Completer> {
        match self {
            Self::Backends(backends) => backends.open(backend).map(Completer::Backend),
            Self::Inspectors(inspectors) => inspectors.open(backend).map(Completer::Inspector),
        }
    }

    pub fn inspector_before_opening(&self, backend: &str) -> Option<Arc<dyn Inspector>> {
        match self {
            Self::Backends(backends) => backends.inspector_before_opening(backend),
            Self::Inspectors(_) => None,
        }
    }

    /// Returns the settings of a backend, including those for all.
    pub fn settings(&self, backend: &str) -> BTreeMap<String, String> {
        match self {
            Self::Backends(backends) => backends.settings.of(backend),
            Self::Inspectors(inspectors) => inspectors.settings.of(backend),
        }
    }
}

//! The open backends and their settings, and the completion of configurations.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_backend::{Backend, CompletionContext, Inspector};
use galatea_config::{
    ConfigDraft, Diagnostic, ModelConfig, PreferredGroup, RawModelConfig, backend_advice,
};
use galatea_types::{Error, LockExt, Result};

use super::backend_library::{is_library_of_model, library_name, wants_library};
use crate::{
    backend_registry::Registry, backend_settings::BackendSettings, repository::ModelFolder,
};

/// The `runtime` of a configuration whose backend is written in Python.
const PYTHON_RUNTIME: &str = "model.py";

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
        self.find(name)?.ok_or_else(|| self.unknown(name))
    }

    /// Returns the backend that a configuration names. The error of a backend that is nowhere tells about its runtime.
    pub fn open_named(&self, raw: &RawModelConfig, folder: &ModelFolder) -> Result<Arc<T>> {
        let parameters = ConfigDraft::from(raw.clone()).parameters();
        let name = self.name_for(&raw.backend, &parameters, folder);
        self.find(&name)?.ok_or_else(|| match raw.runtime == PYTHON_RUNTIME {
            true => self.without_code(raw),
            false => self.unknown(&raw.backend),
        })
    }

    fn find(&self, name: &str) -> Result<Option<Arc<T>>> {
        let mut opened = self.opened.lock_unpoisoned();
        if let Some(backend) = opened.get(name) {
            return Ok(Some(backend.clone()));
        }
        let found = self.registry.open(name).transpose()?;
        if let Some(backend) = &found {
            opened.insert(name.to_owned(), backend.clone());
        }
        Ok(found)
    }

    /// Returns the backend for a model, and opens it if necessary: by the name of its library if that is to run the model, else
    /// by its own.
    pub fn open_for(
        &self,
        name: &str,
        parameters: &BTreeMap<String, String>,
        folder: &ModelFolder,
    ) -> Result<Arc<T>> {
        self.open(&self.name_for(name, parameters, folder))
    }

    /// Returns the file that a version of a model runs by, if it is none of this program's backends: the first library in the
    /// folder of the version, that of the model, and that of the backend, or the backend's code.
    pub fn library_of(
        &self,
        config: &ModelConfig,
        folder: &ModelFolder,
        version: i64,
    ) -> Option<PathBuf> {
        let name = config.backend();
        let opened = self.name_for(name, config.parameters(), folder);
        if self.registry.is_known(&opened) {
            return None;
        }
        let own = [folder.version_dir(version), folder.path().to_owned()];
        let own = own.map(|folder| folder.join(library_name(name)));
        own.into_iter().chain(self.registry.places(name)).find(|path| path.is_file())
    }

    /// Returns the name by which the backend of a model is opened.
    fn name_for(
        &self,
        name: &str,
        parameters: &BTreeMap<String, String>,
        folder: &ModelFolder,
    ) -> String {
        let is_wanted = wants_library(parameters, &self.settings.of(name));
        let is_brought = || !self.registry.is_known(name) && is_library_of_model(name, folder);
        match is_wanted || is_brought() {
            true => library_name(name),
            false => name.to_owned(),
        }
    }

    /// Returns the inspector for models of a backend that is not open yet, if opening it takes long.
    fn inspector_before_opening(&self, name: &str) -> Option<Arc<dyn Inspector>> {
        let inspector = self.registry.inspector(name)?;
        let is_open = self.opened.try_lock().is_ok_and(|opened| opened.contains_key(name));
        (!is_open).then_some(inspector)
    }

    fn unknown(&self, name: &str) -> Error {
        let known = self.registry.names().collect::<Vec<_>>().join(", ");
        let places = self.places(name, |_| true, " or ");
        let searched =
            if places.is_empty() { places } else { format!(" There is no {places} either.") };
        let text = format!(
            "unable to find backend library for backend '{name}', try specifying runtime on the model \
             configuration. This server has the backends: {known}.{searched}"
        );
        let found = Diagnostic::error(text.as_str())
            .with_advice(backend_advice(name, self.registry.names()))
            .about("backend");
        Error::invalid_arg(text).with_source(found)
    }

    /// Returns the error of a backend whose configuration says that it is written in Python.
    fn without_code(&self, raw: &RawModelConfig) -> Error {
        let text = format!(
            "unable to find Python backend based backend library '{}' for model '{}', searched: {}",
            raw.runtime,
            raw.name,
            self.places(&raw.backend, |place| place.ends_with(PYTHON_RUNTIME), " ")
        );
        let advice = "`--backend-directory` names the folder that has the folders of backends";
        let found = Diagnostic::error(text.as_str()).with_advice(advice).about("backend");
        Error::invalid_arg(text).with_source(found)
    }

    /// Returns those of the files that were looked for to find this backend, in quotes.
    fn places(&self, name: &str, is_told: impl Fn(&Path) -> bool, separator: &str) -> String {
        let places = self.registry.places(name);
        let quoted = places
            .iter()
            .filter(|place| is_told(place))
            .map(|place| format!("'{}'", place.display()));
        quoted.collect::<Vec<_>>().join(separator)
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

    /// Fills in the runtime of the backend, unless the configuration names one.
    pub fn name_runtime(&self, raw: &mut RawModelConfig) {
        let own = match self {
            Self::Backend(backend) => backend.default_runtime(),
            Self::Inspector(inspector) => inspector.default_runtime(),
        };
        if raw.runtime.is_empty() {
            raw.runtime.push_str(own.unwrap_or_default());
        }
    }

    /// Returns true for an inspector, because only a running server knows.
    pub fn can_use_gpus(&self) -> bool {
        match self {
            Self::Backend(backend) => backend.can_use_gpus(),
            Self::Inspector(_) => true,
        }
    }

    /// Returns none for an inspector, because only the backend's library knows.
    pub fn preferred_groups(
        &self,
        config: &ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Vec<PreferredGroup> {
        match self {
            Self::Backend(backend) => backend.preferred_groups(config, context),
            Self::Inspector(_) => Vec::new(),
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
    /// Returns what completes this configuration: its backend.
    pub fn completer(&self, raw: &RawModelConfig, folder: &ModelFolder) -> Result<Completer> {
        match self {
            Self::Backends(backends) => backends.open_named(raw, folder).map(Completer::Backend),
            Self::Inspectors(inspectors) => {
                inspectors.open_named(raw, folder).map(Completer::Inspector)
            }
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

//! Decides which models are loaded and unloaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use galatea_backend::ServerAccess;
use galatea_config::ConfigDraft;
use galatea_types::{LockExt, Result};

use super::{
    backends::Backends,
    control_error::ControlError,
    dependencies::{Dependencies, LoadRequest},
    load_failure::{Failures, LoadFailure},
    looks::Looks,
    model_loader::ModelLoader,
    operations::Operations,
    version_loader::VersionLoader,
    waves::{self, Outcome},
};
use crate::{
    backend_registry::BackendRegistry,
    lifecycle::Lifecycle,
    options::{ControlMode, EngineOptions},
    overrides::LoadOverrides,
    ready_models::ReadyModels,
    repository::{MAX_MODEL_NAME, Repository, RepositoryRoot, is_model_name},
    startup::{FailedModels, ModelFailure, StartupError},
    unloader::Unloader,
};

/// Loads and unloads models, each ensemble after the models it needs.
pub(crate) struct ModelManager {
    control_mode: ControlMode,
    startup_models: Vec<String>,
    load_thread_count: usize,
    pub(super) repository: Arc<Repository>,
    models: Arc<ReadyModels>,
    pub(super) dependencies: Arc<Dependencies>,
    pub(super) loader: ModelLoader,
    looks: Mutex<Looks>,
}

impl ModelManager {
    /// `server`: what models see of it.
    pub fn new(
        options: &EngineOptions,
        repository: Arc<Repository>,
        lifecycle: Arc<Lifecycle>,
        models: Arc<ReadyModels>,
        backends: BackendRegistry,
        server: ServerAccess,
    ) -> Self {
        let versions = VersionLoader {
            backends: Backends::new(backends, options.backend_config.clone()),
            server,
            unloader: Unloader::start(lifecycle.clone()),
            hold_until_queued: options.hold_until_queued,
        };
        let dependencies = Arc::<Dependencies>::default();
        Self {
            control_mode: options.control_mode,
            startup_models: options.startup_models.clone(),
            load_thread_count: options.load_thread_count,
            dependencies: dependencies.clone(),
            loader: ModelLoader {
                repository: repository.clone(),
                lifecycle,
                models: models.clone(),
                dependencies,
                versions,
                gpus: options.gpus.clone(),
                auto_completes_config: options.auto_completes_config,
                allows_override_paths: options.allows_override_paths,
                retry_count: options.load_retry_count,
                operations: Operations::default(),
                override_folders: Arc::default(),
            },
            repository,
            models,
            looks: Mutex::default(),
        }
    }

    pub fn models(&self) -> &ReadyModels {
        &self.models
    }

    /// Removes the files of load requests: the process is about to end.
    pub fn remove_override_files(&self) {
        self.loader.override_folders.close();
    }

    /// See [`Engine::load_startup_models`](crate::Engine::load_startup_models).
    pub fn load_startup_models(&self) -> Result<(), StartupError> {
        self.repository.check().map_err(|error| {
            self.models.fail_start();
            StartupError::Aborted(error)
        })?;
        let mut requests = BTreeMap::new();
        for name in self.startup_names() {
            self.add_request(&name, LoadOverrides::default(), true, &mut requests);
        }
        let count = requests.len();
        let failures = self.load_all(requests, Failures::new()).failures;
        if failures.is_empty() {
            return Ok(());
        }
        let ready_count = count.saturating_sub(failures.len());
        Err(StartupError::Models(FailedModels { ready_count, failures: causes_first(failures) }))
    }

    fn startup_names(&self) -> Vec<String> {
        let asks_for_all = self.startup_models.iter().any(|m| m == "*");
        match self.control_mode {
            ControlMode::Explicit if !asks_for_all => self.startup_models.clone(),
            _ => self.repository.model_names(),
        }
    }

    /// See [`Engine::load_model`](crate::Engine::load_model).
    pub fn load(&self, name: &str, overrides: LoadOverrides) -> Result<()> {
        self.check_call(name)?;
        let mut requests = BTreeMap::new();
        self.add_request(name, overrides, true, &mut requests);
        let Outcome { mut failures, changed } = self.load_all(requests, Failures::new());
        self.load_dependents(&changed, failures.clone());
        match failures.remove(name) {
            None => Ok(()),
            Some(failure) => Err(failure.into_error(name)),
        }
    }

    /// See [`Engine::unload_model`](crate::Engine::unload_model).
    pub fn unload(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.check_call(name)?;
        let forgotten = self.dependencies.forget(name, unload_dependents);
        for name in &forgotten {
            self.loader.unload(name);
        }
        // Looked for last: an ensemble that is being loaded is known before it looks for what it needs.
        for ensemble in self.dependencies.dependents(&forgotten) {
            self.loader.unload(&ensemble.name);
        }
        Ok(())
    }

    /// See [`Engine::add_repository`](crate::Engine::add_repository).
    pub fn add_repository(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        match self.control_mode {
            ControlMode::Explicit => self.repository.add(root),
            ControlMode::None | ControlMode::Poll => Err(ControlError::NoRegistration.into()),
        }
    }

    /// See [`Engine::remove_repository`](crate::Engine::remove_repository).
    pub fn remove_repository(&self, place: &str) {
        let Some(root) = self.repository.remove(place) else { return };
        let names = root.model_names().unwrap_or_default();
        for name in root.new_name().map(str::to_owned).into_iter().chain(names) {
            if matches!(self.repository.find(&name), Ok(None)) {
                self.loader.lifecycle.forget(&name);
            }
        }
    }

    /// One look at a time.
    pub(super) fn lock_looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock_unpoisoned()
    }

    pub(super) fn load_all(
        &self,
        requests: BTreeMap<String, LoadRequest>,
        failures: Failures,
    ) -> Outcome {
        let requests = requests.into_values().collect();
        waves::load_all(&self.loader, self.load_thread_count, requests, failures)
    }

    /// Loads the ensembles again that need any of the models that changed.
    pub(super) fn load_dependents(&self, changed: &BTreeSet<String>, failures: Failures) {
        let requests = self.dependencies.dependents(changed);
        waves::load_all(&self.loader, self.load_thread_count, requests, failures);
    }

    /// Adds a model, and what it needs, at any depth: of that, what is ready and did not change is left alone.
    pub(super) fn add_request(
        &self,
        name: &str,
        overrides: LoadOverrides,
        is_explicit: bool,
        requests: &mut BTreeMap<String, LoadRequest>,
    ) {
        if let Some(request) = requests.get_mut(name) {
            request.is_explicit |= is_explicit;
            return;
        }
        let (name, needs) = (name.to_owned(), self.models_of_steps(name, &overrides));
        let (is_dependent, steps) = (false, needs.clone());
        let request = LoadRequest { name, needs, is_explicit, overrides, is_dependent };
        requests.insert(request.name.clone(), request);
        for needed in steps {
            if matches!(self.repository.find(&needed), Ok(Some(_))) {
                self.add_request(&needed, LoadOverrides::default(), false, requests);
            }
        }
    }

    /// The models that an ensemble's steps run on; empty for every other model, and where the configuration
    /// cannot be read: loading it reports why.
    fn models_of_steps(&self, name: &str, overrides: &LoadOverrides) -> BTreeSet<String> {
        let raw = match &overrides.config {
            Some(json) => galatea_config::parse_json(json).ok(),
            None => {
                let text = self.repository.read_config(name);
                text.ok().and_then(|text| galatea_config::parse_text(&text).ok())
            }
        };
        raw.map(|raw| ConfigDraft::from(raw).step_models()).unwrap_or_default()
    }

    /// Whether clients may load and unload a model of this name.
    pub fn check_call(&self, name: &str) -> Result<()> {
        self.models.check_serving()?;
        match self.control_mode {
            ControlMode::Explicit => Ok(check_name(name)?),
            ControlMode::None | ControlMode::Poll => Err(ControlError::NotExplicit.into()),
        }
    }
}

/// Sorted by name; ensembles that fail because of another model come last.
fn causes_first(failures: Failures) -> Vec<ModelFailure> {
    let (dependent, others): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, failure)| matches!(failure, LoadFailure::Invalid(_)));
    let failure = |(model, failure): (String, LoadFailure)| {
        let error = failure.into_error(&model);
        ModelFailure { model, error }
    };
    others.into_iter().chain(dependent).map(failure).collect()
}

/// A name becomes part of a path: it must not lead out of the repository.
fn check_name(name: &str) -> Result<(), ControlError> {
    if name.is_empty() {
        return Err(ControlError::EmptyName);
    }
    if name.len() > MAX_MODEL_NAME {
        return Err(ControlError::LongName { size: name.len(), limit: MAX_MODEL_NAME });
    }
    if !is_model_name(name) {
        return Err(ControlError::PathTraversal { name: name.to_owned() });
    }
    Ok(())
}

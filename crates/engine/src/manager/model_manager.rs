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
    cached_models::CachedModels,
    control_error::ControlError,
    dependencies::{Dependencies, LoadRequest},
    load_failure::{self, Failures, LoadFailure},
    looks::Looks,
    model_loader::ModelLoader,
    operations::Operations,
    version_loader::VersionLoader,
    waves::{self, Outcome},
};
use crate::{
    backend_registry::BackendRegistry,
    lifecycle::Lifecycle,
    metrics::ModelDistributions,
    model_id::ModelId,
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
            distributions: ModelDistributions::new(&options.metrics),
            cached: CachedModels::new(options),
            hold: options.hold,
            starts_instances_one_by_one: options.starts_instances_one_by_one,
            execution: options.execution.clone(),
            clock: options.clock.clone(),
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
                backend_directory: options.backend_directory.clone(),
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
        let _look = self.repository.begin_look();
        self.repository.check().map_err(|error| {
            self.models.fail_start();
            StartupError::Aborted(error)
        })?;
        for (root, oddity) in self.repository.oddities() {
            log::warn!("{}", oddity.line(&root));
        }
        let mut requests = BTreeMap::new();
        for id in self.startup_models() {
            self.add_request(&id, LoadOverrides::default(), true, &mut requests);
        }
        let count = requests.len();
        let failures = self.load_all(requests, Failures::new()).failures;
        if failures.is_empty() {
            return Ok(());
        }
        let ready_count = count.saturating_sub(failures.len());
        Err(StartupError::Models(FailedModels { ready_count, failures: causes_first(failures) }))
    }

    fn startup_models(&self) -> BTreeSet<ModelId> {
        let asks_for_all = self.startup_models.iter().any(|m| m == "*");
        match self.control_mode {
            ControlMode::Explicit if !asks_for_all => {
                self.startup_models.iter().flat_map(|name| self.to_load(name)).collect()
            }
            _ => self.repository.models(),
        }
    }

    /// The models to load where a client asks for a name: all that have it. Where none has it, one that is not found.
    fn to_load(&self, name: &str) -> Vec<ModelId> {
        let found = self.repository.named(name);
        if found.is_empty() { vec![ModelId::global(name)] } else { found }
    }

    /// See [`Engine::load_model`](crate::Engine::load_model).
    pub fn load(&self, name: &str, overrides: LoadOverrides) -> Result<()> {
        self.check_call(name)?;
        let _look = self.repository.begin_look();
        let asked = match overrides.files.is_empty() {
            true => self.to_load(name),
            false => vec![ModelId::global(name)],
        };
        let mut requests = BTreeMap::new();
        for id in &asked {
            self.add_request(id, overrides.clone(), true, &mut requests);
        }
        let Outcome { mut failures, changed } = self.load_all(requests, Failures::new());
        self.load_dependents(&changed, failures.clone());
        load_failure::joined(asked.into_iter().filter_map(|id| failures.remove_entry(&id)))
    }

    /// See [`Engine::unload_model`](crate::Engine::unload_model).
    pub fn unload(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.check_call(name)?;
        let mut named = self.dependencies.models();
        named.retain(|id| *id.name == *name);
        named.insert(ModelId::global(name));
        let forgotten = self.dependencies.forget(named, unload_dependents);
        for id in &forgotten {
            self.loader.unload(id);
            self.loader.forget(id);
        }
        // Looked for last: an ensemble that is being loaded is known before it looks for what it needs.
        for ensemble in self.dependencies.dependents(&forgotten) {
            self.loader.unload(&ensemble.id);
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
        for id in self.repository.remove(place) {
            if matches!(self.repository.find(&id), Ok(None)) {
                self.loader.lifecycle.removed(&id);
                self.forget_unless_ready(id);
            }
        }
    }

    /// Forgets a model that no repository holds any more, with its name: clients choose those of what they add.
    fn forget_unless_ready(&self, id: ModelId) {
        if !self.models.contains(&id) {
            self.loader.forget(&id);
            self.models.forget_name(&id.name);
            self.dependencies.forget(BTreeSet::from([id]), false);
        }
    }

    /// One look at a time.
    pub(super) fn lock_looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock_unpoisoned()
    }

    pub(super) fn load_all(
        &self,
        requests: BTreeMap<ModelId, LoadRequest>,
        failures: Failures,
    ) -> Outcome {
        let requests = requests.into_values().collect();
        waves::load_all(&self.loader, self.load_thread_count, requests, failures)
    }

    /// Loads the ensembles again that need any of the models that changed.
    pub(super) fn load_dependents(&self, changed: &BTreeSet<ModelId>, failures: Failures) {
        let requests = self.dependencies.dependents(changed);
        waves::load_all(&self.loader, self.load_thread_count, requests, failures);
    }

    /// Adds a model, and what it needs, at any depth: of that, what is ready and did not change is left alone.
    pub(super) fn add_request(
        &self,
        id: &ModelId,
        overrides: LoadOverrides,
        is_explicit: bool,
        requests: &mut BTreeMap<ModelId, LoadRequest>,
    ) {
        if let Some(request) = requests.get_mut(id) {
            request.is_explicit |= is_explicit;
            return;
        }
        let (id, steps) = (id.clone(), self.steps(id, &overrides));
        let request =
            LoadRequest { id, steps: steps.clone(), is_explicit, overrides, is_dependent: false };
        requests.insert(request.id.clone(), request);
        for needed in steps.iter().flat_map(|step| self.repository.named(step)) {
            if matches!(self.repository.find(&needed), Ok(Some(_))) {
                self.add_request(&needed, LoadOverrides::default(), false, requests);
            }
        }
    }

    /// Names of the models that an ensemble's steps run on; empty for every other model, and where the configuration
    /// cannot be read: loading it reports why.
    fn steps(&self, id: &ModelId, overrides: &LoadOverrides) -> BTreeSet<Arc<str>> {
        let raw = match &overrides.config {
            Some(json) => galatea_config::parse_json(json).ok(),
            None => {
                let text = self.repository.read_config(id);
                text.ok().and_then(|text| galatea_config::parse_text(&text).ok())
            }
        };
        let steps = raw.map(|raw| ConfigDraft::from(raw).step_models()).unwrap_or_default();
        steps.into_iter().map(Arc::from).collect()
    }

    /// Whether clients may load and unload models.
    pub fn check_control(&self) -> Result<()> {
        self.models.check_serving()?;
        match self.control_mode {
            ControlMode::Explicit => Ok(()),
            ControlMode::None | ControlMode::Poll => Err(ControlError::NotExplicit.into()),
        }
    }

    /// Whether clients may load and unload a model of this name.
    pub fn check_call(&self, name: &str) -> Result<()> {
        self.check_control()?;
        Ok(check_name(name)?)
    }
}

/// Sorted by name; ensembles that fail because of another model come last.
fn causes_first(failures: Failures) -> Vec<ModelFailure> {
    let (dependent, others): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, failure)| matches!(failure, LoadFailure::Invalid(_)));
    let failure = |(id, failure): (ModelId, LoadFailure)| {
        let error = failure.into_error(&id);
        ModelFailure { model: id.to_string(), error }
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

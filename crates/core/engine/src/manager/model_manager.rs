//! Decides which models are loaded and unloaded.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use galatea_backend::ServerAccess;
use galatea_types::{Error, LockExt, Result};

use super::{
    load::{
        Backends, CachedModels, Failures, LoadFailure, LoadsUnderWay, ModelLoader, Operations,
        Outcome, VersionLoader, joined, run,
    },
    plan::{Dependencies, LoadRequest, Looks, Requests, in_order, with_needs},
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
    pub(super) dependencies: Arc<Mutex<Dependencies>>,
    pub(super) loader: ModelLoader,
    looks: Mutex<Looks>,
    under_way: LoadsUnderWay,
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
            devices: options.devices.clone(),
            starts_instances_one_by_one: options.starts_instances_one_by_one,
            execution: options.execution.clone(),
            clock: options.clock.clone(),
        };
        let dependencies = Arc::<Mutex<Dependencies>>::default();
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
                agents: options.agents.clone(),
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
            under_way: LoadsUnderWay::by_clock(options.clock.clone()),
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
        let models = self.startup_models();
        let requests = with_needs(&models, &LoadOverrides::default(), &*self.repository);
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
        let requests = with_needs(&asked, &overrides, &*self.repository);
        let others = requests.keys().filter(|id| !asked.contains(id));
        let _under_way = self.under_way.begin(others.map(|id| id.name.clone()).collect());
        let Outcome { mut failures, changed } = self.load_all(requests, Failures::new());
        self.load_dependents(&changed, failures.clone());
        joined(asked.into_iter().filter_map(|id| failures.remove_entry(&id)))
    }

    /// See [`Engine::unload_model`](crate::Engine::unload_model).
    pub fn unload(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.check_call(name)?;
        self.under_way.wait_until_unwanted(name);
        let mut named = self.dependencies.lock_unpoisoned().models();
        named.retain(|id| *id.name == *name);
        named.insert(ModelId::global(name));
        let forgotten = self.dependencies.lock_unpoisoned().forget(named, unload_dependents);
        for id in &forgotten {
            self.loader.unload(id);
            self.loader.forget(id);
        }
        // Looked for last: an ensemble that is being loaded is known before it looks for what it needs.
        let ensembles = self.dependencies.lock_unpoisoned().dependents(&forgotten);
        for ensemble in ensembles {
            self.loader.unload(&ensemble.id);
        }
        Ok(())
    }

    /// See [`Engine::add_repository`](crate::Engine::add_repository).
    pub fn add_repository(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        match self.control_mode {
            ControlMode::Explicit => self.repository.add(root),
            ControlMode::None | ControlMode::Poll => Err(Error::unsupported(
                "repository registration is not allowed if model control mode is not EXPLICIT",
            )),
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
            self.dependencies.lock_unpoisoned().forget(BTreeSet::from([id]), false);
        }
    }

    /// One look at a time.
    pub(super) fn lock_looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock_unpoisoned()
    }

    pub(super) fn load_all(&self, requests: Requests, failures: Failures) -> Outcome {
        self.load_in_order(requests.into_values().collect(), failures)
    }

    /// Loads the ensembles again that need any of the models that changed.
    pub(super) fn load_dependents(&self, changed: &BTreeSet<ModelId>, failures: Failures) {
        let requests = self.dependencies.lock_unpoisoned().dependents(changed);
        self.load_in_order(requests, failures);
    }

    fn load_in_order(&self, requests: Vec<LoadRequest>, failures: Failures) -> Outcome {
        let steps = in_order(requests, &|id| self.models.is_known(id));
        run(&self.loader, self.load_thread_count, steps, failures)
    }

    /// Whether clients may load and unload models.
    pub fn check_control(&self) -> Result<()> {
        self.models.check_serving()?;
        match self.control_mode {
            ControlMode::Explicit => Ok(()),
            ControlMode::None | ControlMode::Poll => Err(Error::unavailable(
                "explicit model load / unload is not allowed if polling is enabled",
            )),
        }
    }

    /// Whether clients may load and unload a model of this name.
    pub fn check_call(&self, name: &str) -> Result<()> {
        self.check_control()?;
        check_name(name)
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
fn check_name(name: &str) -> Result<()> {
    let visible = name.trim();
    if visible.is_empty() {
        return Err(Error::invalid_arg("Model name cannot be empty"));
    }
    if name.len() > MAX_MODEL_NAME {
        return Err(Error::invalid_arg(format!(
            "invalid model name: it has {} bytes, the limit is {MAX_MODEL_NAME}",
            name.len()
        )));
    }
    if !is_model_name(name) || !is_model_name(visible) {
        return Err(Error::invalid_arg(format!(
            "invalid model name '{name}', model name must not contain path traversal characters"
        )));
    }
    Ok(())
}

//! Decides which models are loaded and unloaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use galatea_backend::ServerAccess;
use galatea_config::ConfigDraft;
use galatea_types::Result;

use super::{
    backends::Backends,
    control_error::ControlError,
    dependencies::{Dependencies, LoadRequest},
    load_failure::{Failures, LoadFailure},
    model_loader::ModelLoader,
    operations::Operations,
    version_loader::VersionLoader,
    waves,
};
use crate::{
    backend_registry::BackendRegistry,
    lifecycle::Lifecycle,
    options::{ControlMode, EngineOptions},
    overrides::LoadOverrides,
    ready_models::ReadyModels,
    repository::{CONFIG_FILE, MAX_MODEL_NAME, Repository, is_model_name},
    startup::{FailedModels, ModelFailure, StartupError},
    unloader::Unloader,
};

/// Loads and unloads models, each ensemble after the models it needs.
pub(crate) struct ModelManager {
    control_mode: ControlMode,
    startup_models: Vec<String>,
    load_thread_count: usize,
    repository: Arc<Repository>,
    models: Arc<ReadyModels>,
    dependencies: Dependencies,
    loader: ModelLoader,
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
        Self {
            control_mode: options.control_mode,
            startup_models: options.startup_models.clone(),
            load_thread_count: options.load_thread_count,
            dependencies: Dependencies::default(),
            loader: ModelLoader {
                repository: repository.clone(),
                lifecycle,
                models: models.clone(),
                versions,
                gpus: options.gpus.clone(),
                auto_completes_config: options.auto_completes_config,
                allows_override_paths: options.allows_override_paths,
                operations: Operations::default(),
                override_folders: Arc::default(),
            },
            repository,
            models,
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
        self.repository.check().map_err(StartupError::Aborted)?;
        let mut requests = BTreeMap::new();
        for name in self.startup_names() {
            self.add_request(&name, LoadOverrides::default(), true, &mut requests);
        }
        let count = requests.len();
        let failures = self.load_all(requests.values().cloned().collect(), Failures::new());
        self.remember(requests, &failures);
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
        let names: BTreeSet<String> = requests.keys().cloned().collect();
        let mut failures = self.load_all(requests.values().cloned().collect(), Failures::new());
        self.remember(requests, &failures);
        // Where a load failed, what was ready before still is.
        let is_changed =
            |name: &String| matches!(failures.get(name), None | Some(LoadFailure::Invalid(_)));
        let changed = names.into_iter().filter(is_changed).collect();
        self.load_all(self.dependencies.dependents(&changed), failures.clone());
        match failures.remove(name) {
            None => Ok(()),
            Some(failure) => Err(failure.into_error(name)),
        }
    }

    /// See [`Engine::unload_model`](crate::Engine::unload_model).
    pub fn unload(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.check_call(name)?;
        let forgotten = self.dependencies.forget(name, unload_dependents);
        for ensemble in self.dependencies.dependents(&forgotten) {
            self.loader.unload(&ensemble.name);
        }
        for name in forgotten {
            self.loader.unload(&name);
        }
        Ok(())
    }

    /// Remembers what was loaded, and of what failed the models of the repository as they are there: an ensemble is
    /// loaded when what it needs is. Nothing stays of a name that no repository holds, or of what came with a load
    /// request that failed.
    fn remember(&self, requests: BTreeMap<String, LoadRequest>, failures: &Failures) {
        let is_worth_it = |request: &LoadRequest| {
            let is_plain = request.overrides.is_empty();
            let is_held = || !matches!(self.repository.find(&request.name), Ok(None));
            !failures.contains_key(&request.name) || (is_plain && is_held())
        };
        requests.values().filter(|r| is_worth_it(r)).for_each(|r| self.dependencies.record(r));
    }

    fn load_all(&self, requests: Vec<LoadRequest>, failures: Failures) -> Failures {
        waves::load_all(&self.loader, self.load_thread_count, requests, failures)
    }

    /// Adds a model, and what it needs that is not ready, at any depth.
    fn add_request(
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
        let request = LoadRequest { name, needs: needs.clone(), is_explicit, overrides };
        requests.insert(request.name.clone(), request);
        for needed in needs {
            let is_loadable = || matches!(self.repository.find(&needed), Ok(Some(_)));
            if !self.models.contains(&needed) && is_loadable() {
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
                let text = self.repository.read_text(name, CONFIG_FILE);
                text.ok().and_then(|text| galatea_config::parse_text(&text).ok())
            }
        };
        raw.map(|raw| ConfigDraft::from(raw).step_models()).unwrap_or_default()
    }

    /// Whether clients may load and unload a model of this name.
    pub fn check_call(&self, name: &str) -> Result<()> {
        match self.control_mode {
            ControlMode::Explicit => Ok(check_name(name)?),
            ControlMode::None => Err(ControlError::NotExplicit.into()),
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

//! Decides which models are loaded and unloaded.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use galatea_backend::ServerAccess;
use galatea_types::{Error, LockExt, Result};

use super::{
    load::{
        Backends, Failures, LoadFailure, Loaded, LoadsUnderWay, ModelLoader, Operations,
        VersionLoader, joined,
    },
    plan::{
        Dependencies, LoadRequest, PollHistory, PollOutcome, PolledFolders, Requests, Step,
        in_order, with_needs,
    },
};
use crate::{
    backend_registry::BackendRegistry,
    lifecycle::Lifecycle,
    model_id::ModelId,
    options::{ControlMode, EngineOptions},
    overrides::LoadOverrides,
    ready_models::ReadyModels,
    repository::{MAX_MODEL_NAME, Repository, RepositoryRoot, is_model_name},
    startup::{FailedModels, ModelFailure, StartupError},
    unloader::Unloader,
};

/// The result of several loads.
struct Outcome {
    /// The failures, new and earlier ones.
    failures: Failures,
    /// Models whose ready versions changed or are gone.
    changed: BTreeSet<ModelId>,
}

/// Loads and unloads models, each ensemble after the models it needs.
pub(crate) struct ModelManager {
    options: Arc<EngineOptions>,
    repository: Arc<Repository>,
    pub models: Arc<ReadyModels>,
    dependencies: Arc<Mutex<Dependencies>>,
    pub loader: ModelLoader,
    /// Locked by each look, so that there is one at a time.
    looks: Mutex<PollHistory>,
    under_way: LoadsUnderWay,
}

impl ModelManager {
    pub fn new(
        options: &Arc<EngineOptions>,
        repository: Arc<Repository>,
        lifecycle: Arc<Lifecycle>,
        models: Arc<ReadyModels>,
        backends: BackendRegistry,
        server: ServerAccess,
    ) -> Self {
        let versions = VersionLoader {
            options: options.clone(),
            backends: Backends::new(backends, options.backend_config.clone()),
            server,
            unloader: Unloader::start(lifecycle.clone()),
        };
        let dependencies = Arc::<Mutex<Dependencies>>::default();
        Self {
            options: options.clone(),
            dependencies: dependencies.clone(),
            loader: ModelLoader {
                options: options.clone(),
                repository: repository.clone(),
                lifecycle,
                models: models.clone(),
                dependencies,
                versions,
                operations: Operations::default(),
                override_folders: Arc::default(),
            },
            repository,
            models,
            looks: Mutex::new(PollHistory::new(options.reload_jitter)),
            under_way: LoadsUnderWay::by_clock(options.clock.clone()),
        }
    }

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
        let asks_for_all = self.options.startup_models.iter().any(|m| m == "*");
        match self.options.control_mode {
            ControlMode::Explicit if !asks_for_all => {
                self.options.startup_models.iter().flat_map(|name| self.to_load(name)).collect()
            }
            _ => self.repository.models(),
        }
    }

    /// Returns the models to load for a name from a client: all that have it. If none has, a model that will not be found.
    fn to_load(&self, name: &str) -> Vec<ModelId> {
        let found = self.repository.named(name);
        if found.is_empty() { vec![ModelId::global(name)] } else { found }
    }

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

    pub fn unload(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.check_call(name)?;
        self.under_way.wait_until_unwanted(name);
        let mut named = self.dependencies.lock_unpoisoned().models();
        named.retain(|id| *id.name == *name);
        named.insert(ModelId::global(name));
        let forgotten = self.dependencies.lock_unpoisoned().forget(named, unload_dependents);
        for id in &forgotten {
            self.loader.unload(id);
            self.models.deregister(id);
        }
        // Looked up last, because a loading ensemble is registered before it looks up its models.
        let ensembles = self.dependencies.lock_unpoisoned().dependents(&forgotten);
        for ensemble in ensembles {
            self.loader.unload(&ensemble.id);
        }
        Ok(())
    }

    pub fn add_repository(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        match self.options.control_mode {
            ControlMode::Explicit => self.repository.add(root),
            ControlMode::None | ControlMode::Poll => Err(Error::unsupported(
                "repository registration is not allowed if model control mode is not EXPLICIT",
            )),
        }
    }

    pub fn remove_repository(&self, place: &str) {
        for id in self.repository.remove(place) {
            if matches!(self.repository.find(&id), Ok(None)) {
                self.loader.lifecycle.removed(&id);
                self.forget_unless_ready(id);
            }
        }
    }

    /// Forgets a model that no repository has any more, with its name, because clients choose the names of models they add.
    fn forget_unless_ready(&self, id: ModelId) {
        if !self.models.contains(&id) {
            self.models.deregister(&id);
            self.models.forget_name(&id.name);
            self.dependencies.lock_unpoisoned().forget(BTreeSet::from([id]), false);
        }
    }

    pub fn poll(&self, retries: bool) -> PollOutcome {
        if self.models.check_serving().is_err() {
            return PollOutcome::Settled;
        }
        let mut looks = self.looks.lock_unpoisoned();
        let _look = self.repository.begin_look();
        let seen = self.look();
        let (gone, not_loaded) = {
            let loaded = self.dependencies.lock_unpoisoned();
            (seen.gone(&loaded), seen.not_loaded(&loaded))
        };
        let settled = looks.settled(not_loaded, retries, self.options.clock.now());
        if settled.is_empty() && gone.is_empty() {
            return looks.outcome(self.options.clock.now());
        }
        gone.iter().for_each(|id| self.drop_model(id));
        let mut requests = with_needs(settled.keys(), &LoadOverrides::default(), &*self.repository);
        // The models that they need are checked separately.
        requests.retain(|id, _| settled.contains_key(id));
        let mut loaded = self.load_all(requests, Failures::new());
        loaded.changed.extend(gone);
        looks.loaded(settled, |id| loaded.failures.contains_key(id));
        self.load_dependents(&loaded.changed, loaded.failures);
        looks.outcome(self.options.clock.now())
    }

    fn look(&self) -> PolledFolders {
        let listing = self.repository.list();
        let folder = |id: &ModelId| Some((id.clone(), self.repository.snapshot(id)?));
        let folders = listing.models.iter().filter_map(folder).collect();
        PolledFolders { folders, models: listing.models, is_complete: listing.is_complete }
    }

    /// Unloads a model that no repository has any more, or that several have.
    fn drop_model(&self, id: &ModelId) {
        match self.repository.is_ambiguous(id) {
            true => {
                log::error!(
                    "failed to poll model '{id}': not unique across all model repositories"
                );
            }
            false => log::info!("'{id}' is not in the model repositories any more"),
        }
        self.dependencies.lock_unpoisoned().forget(BTreeSet::from([id.clone()]), false);
        self.loader.unload(id);
        self.models.deregister(id);
        self.loader.lifecycle.removed(id);
    }

    fn load_all(&self, requests: Requests, failures: Failures) -> Outcome {
        self.load_in_order(requests.into_values().collect(), failures)
    }

    /// Loads the ensembles again that need any of the changed models.
    fn load_dependents(&self, changed: &BTreeSet<ModelId>, failures: Failures) {
        let requests = self.dependencies.lock_unpoisoned().dependents(changed);
        self.load_in_order(requests, failures);
    }

    /// Executes a plan step by step. `failures` are those of earlier loads.
    fn load_in_order(&self, requests: Vec<LoadRequest>, failures: Failures) -> Outcome {
        let (failures, changed) = (Mutex::new(failures), Mutex::default());
        for step in in_order(requests, &|id| self.models.is_known(id)) {
            match step {
                Step::Load(wave) => self.load_wave(&wave, &failures, &changed),
                Step::Reject(request, cycle) => {
                    let failure = self.loader.reject_cycle(&request, &cycle);
                    failures.lock_unpoisoned().insert(request.id, failure);
                }
            }
        }
        let failures = failures.into_inner_unpoisoned();
        Outcome { failures, changed: changed.into_inner_unpoisoned() }
    }

    /// Loads models at the same time.
    fn load_wave(
        &self,
        wave: &[LoadRequest],
        failures: &Mutex<Failures>,
        changed: &Mutex<BTreeSet<ModelId>>,
    ) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(request) = wave.get(next.fetch_add(1, Ordering::Relaxed)) {
                let loaded = self.loader.load(request, failures);
                // After a failed load the previous versions stay ready, except an ensemble that does not fit its models.
                if matches!(loaded, Ok(Loaded::Anew) | Err(LoadFailure::Invalid(_))) {
                    changed.lock_unpoisoned().insert(request.id.clone());
                }
                if let Err(failure) = loaded {
                    failures.lock_unpoisoned().insert(request.id.clone(), failure);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.options.load_thread_count.clamp(1, wave.len().max(1)) {
                scope.spawn(work);
            }
            work();
        });
    }

    pub fn check_control(&self) -> Result<()> {
        self.models.check_serving()?;
        match self.options.control_mode {
            ControlMode::Explicit => Ok(()),
            ControlMode::None | ControlMode::Poll => Err(Error::unavailable(
                "explicit model load / unload is not allowed if polling is enabled",
            )),
        }
    }

    /// Checks that clients may load and unload a model of this name.
    pub fn check_call(&self, name: &str) -> Result<()> {
        self.check_control()?;
        check_name(name)
    }
}

/// Sorts failures by name; ensembles that fail because of another model come last.
fn causes_first(failures: Failures) -> Vec<ModelFailure> {
    let (dependent, others): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, failure)| matches!(failure, LoadFailure::Invalid(_)));
    let failure = |(id, failure): (ModelId, LoadFailure)| {
        let error = failure.into_error(&id);
        ModelFailure { model: id.to_string(), error }
    };
    others.into_iter().chain(dependent).map(failure).collect()
}

/// Checks a name, which becomes part of a path and must not lead out of the repository.
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

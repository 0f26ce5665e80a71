//! Loads and unloads one model: all its versions or none.

use std::sync::{Arc, Mutex};

use galatea_backend::PathRules;
use galatea_config::{ModelConfig, Scheduling};
use galatea_types::{Error, LockExt, Result};

use super::{
    configuration::Completion,
    dependencies::{Dependencies, LoadRequest},
    dependency_error::DependencyError,
    load_failure::{
        Failures, LoadFailure, VersionFailure, VersionFailures, no_version, no_version_by_policy,
    },
    operations::Operations,
    panic_wall::guarded,
    paths,
    plan::LoadPlan,
    version_loader::{VersionLoader, ensemble_scheduler},
};
use crate::{
    lifecycle::{Generation, Lifecycle, PollFailure},
    options::GpuOptions,
    override_folders::OverrideFolders,
    ready_models::{ReadyModels, ReadyVersions},
    repository::{FolderSnapshot, Repository},
    served_model::ServedModel,
};

/// What a load that did not fail did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// What is ready was made now.
    Anew,
    /// Nothing: what is ready was made of the files that are there.
    Already,
}

/// Loads models one by one, and puts them in the place of what was ready before.
pub(super) struct ModelLoader {
    pub repository: Arc<Repository>,
    pub lifecycle: Arc<Lifecycle>,
    pub models: Arc<ReadyModels>,
    pub dependencies: Arc<Dependencies>,
    pub versions: VersionLoader,
    pub gpus: GpuOptions,
    pub auto_completes_config: bool,
    /// Whether configurations in load requests may name files outside of their model.
    pub allows_override_paths: bool,
    /// How often a failed load of a version is tried again.
    pub retry_count: usize,
    pub operations: Operations,
    /// Where the files of load requests are put.
    pub override_folders: Arc<OverrideFolders>,
}

impl ModelLoader {
    /// Loads a model, unless it is ready and nothing changed. `failures`: of the models it may depend on.
    pub fn load(
        &self,
        request: &LoadRequest,
        failures: &Mutex<Failures>,
    ) -> Result<Loaded, LoadFailure> {
        let name = &request.name;
        let _one_at_a_time = self.operations.begin(name);
        if self.models.is_exiting() {
            return Err(LoadFailure::Exiting);
        }
        if request.is_dependent && !self.dependencies.contains(name) {
            // It was unloaded by name meanwhile.
            return Ok(Loaded::Already);
        }
        let is_of_folder = request.overrides.files.is_empty();
        let snapshot = is_of_folder.then(|| self.repository.snapshot(name)).flatten();
        if self.is_current(request, snapshot.as_ref()) {
            if request.is_explicit {
                self.dependencies.named(name);
            }
            return Ok(Loaded::Already);
        }
        let unchanged = self.unchanged_versions(name, snapshot.as_ref());
        let before = self.dependencies.record(request, snapshot);
        let loaded = self.load_now(request, unchanged, failures);
        if loaded.is_err() {
            // Nothing stays of a name that no repository holds, or of what came with the request.
            let is_held = || !matches!(self.repository.find(name), Ok(None));
            let is_kept = request.overrides.is_empty() && is_held();
            self.dependencies.load_failed(name, before, is_kept);
        }
        loaded.map(|()| Loaded::Anew)
    }

    /// Whether what is ready is what the request would make. A configuration that came with an earlier request stays
    /// until a file of the model changes.
    fn is_current(&self, request: &LoadRequest, snapshot: Option<&FolderSnapshot>) -> bool {
        let name = &request.name;
        if request.is_dependent || !request.overrides.is_empty() || !self.models.works(name) {
            return false;
        }
        let loaded = self.dependencies.snapshot(name);
        // Only a client who names it wants the files of the repository in the place of those that a request brought.
        loaded.is_none() && !request.is_explicit || loaded.is_some() && loaded.as_ref() == snapshot
    }

    /// The ready versions whose files are those they were loaded from: they are kept if their configuration stays.
    fn unchanged_versions(&self, name: &str, now: Option<&FolderSnapshot>) -> ReadyVersions {
        let (Some(now), Some(loaded)) = (now, self.dependencies.snapshot(name)) else {
            return ReadyVersions::new();
        };
        let mut versions = self.models.working(name);
        versions.retain(|&version, _| now.has_same_version(&loaded, version));
        versions
    }

    fn load_now(
        &self,
        request: &LoadRequest,
        unchanged: ReadyVersions,
        failures: &Mutex<Failures>,
    ) -> Result<(), LoadFailure> {
        let plan = self.plan(request)?;
        if plan.is_ensemble() {
            return self.load_ensemble(&plan, failures);
        }
        let complete = || plan.complete(&self.completion(&plan.paths));
        self.load_versions(&plan, unchanged, complete, |config, version, generation| {
            self.versions.load(&plan, config, version, generation)
        })
    }

    /// Unloads all versions of a model once their last requests have left.
    pub fn unload(&self, name: &str) {
        let _one_at_a_time = self.operations.begin(name);
        self.models.replace(name, ReadyVersions::new());
    }

    /// Remembers why an ensemble cannot be loaded.
    pub fn reject_ensemble(&self, name: &str, error: Error) -> LoadFailure {
        self.record_poll_failure(name, PollFailure::Unreadable(error.message().to_owned()));
        LoadFailure::Invalid(error)
    }

    fn plan(&self, request: &LoadRequest) -> Result<LoadPlan, LoadFailure> {
        let name = &request.name;
        let paths =
            paths::rules(name, &request.overrides, &self.repository, self.allows_override_paths);
        let completion = self.completion(&paths);
        let plan = guarded(|| {
            let (overrides, folders) = (&request.overrides, &*self.override_folders);
            LoadPlan::new(name, overrides, folders, &self.repository, &completion)
        });
        let plan = plan.map_err(|error| {
            log::error!("Poll failed for model directory '{name}': {}", error.with_causes());
            self.record_poll_failure(name, PollFailure::Unreadable(error.message().to_owned()));
            LoadFailure::Unreadable(error)
        })?;
        if plan.versions.is_empty() {
            log::error!("{}", no_version_by_policy(name));
            self.record_poll_failure(name, PollFailure::NoVersion(no_version(name)));
            return Err(LoadFailure::NoVersion);
        }
        Ok(plan)
    }

    fn completion<'a>(&'a self, paths: &'a PathRules) -> Completion<'a> {
        Completion {
            backends: &self.versions.backends,
            gpus: &self.gpus,
            is_automatic: self.auto_completes_config,
            paths,
        }
    }

    fn load_ensemble(
        &self,
        plan: &LoadPlan,
        failures: &Mutex<Failures>,
    ) -> Result<(), LoadFailure> {
        let config = match guarded(|| plan.complete(&self.completion(&plan.paths))) {
            Ok(config) => config,
            Err(error) => {
                return self.load_versions(
                    plan,
                    ReadyVersions::new(),
                    || Err(error.clone()),
                    |_, _, _| Err(error.clone()),
                );
            }
        };
        let joined = self.models_of_steps(&config, failures).and_then(|models| {
            let config = guarded(|| join(&config, &models))?;
            Ok((models, config))
        });
        let (models, config) = joined.map_err(|error| {
            let name = &plan.folder.name;
            log::error!("{error}");
            self.models.replace(name, ReadyVersions::new());
            self.reject_ensemble(name, error)
        })?;
        let load = |config: &_, version, generation| {
            self.versions.load_ensemble(plan, config, &models, version, generation)
        };
        // On other models than before.
        self.load_versions(plan, ReadyVersions::new(), || Ok(config.clone()), load)
    }

    /// The models of an ensemble's steps; they are kept as long as the ensemble is.
    fn models_of_steps(
        &self,
        config: &ModelConfig,
        failures: &Mutex<Failures>,
    ) -> Result<Vec<Arc<ServedModel>>> {
        let name = config.name();
        let Scheduling::Ensemble(ensembling) = config.scheduling() else {
            return Ok(Vec::new());
        };
        let failures = failures.lock_unpoisoned();
        let mut models = Vec::with_capacity(ensembling.steps.len());
        for step in &ensembling.steps {
            let model = &*step.model_name;
            let found = self.models.for_model(model, step.model_version);
            match (found, step.model_version) {
                (Ok(model), _) => models.push(model),
                (Err(_), Some(version)) if self.models.contains(model) => {
                    let (ensemble, model) = (name.to_string(), model.to_owned());
                    return Err(
                        DependencyError::VersionNotLoaded { ensemble, model, version }.into()
                    );
                }
                _ => {
                    return Err(LoadFailure::for_dependent(failures.get(model), name, model).into());
                }
            }
        }
        Ok(models)
    }

    /// Remembers why a model is not ready, for the index. A model that is still ready has no failure, and a name
    /// that no repository holds is no model: a client could fill the table with those.
    fn record_poll_failure(&self, name: &str, why: PollFailure) {
        if !self.models.contains(name) && !matches!(self.repository.find(name), Ok(None)) {
            self.lifecycle.set_poll_failure(name, why);
        }
    }

    /// Does a part of a load, again if it fails and more tries are asked for.
    fn retry<T>(&self, name: &str, part: impl Fn() -> Result<T>) -> Result<T> {
        let mut done = guarded(&part);
        for retry in 1..=self.retry_count {
            let Err(error) = &done else { break };
            if self.models.is_exiting() {
                break;
            }
            let (code, error) = (error.code().as_str(), error.with_causes());
            log::warn!("retry {retry} of {} to load '{name}': {code}: {error}", self.retry_count);
            done = guarded(&part);
        }
        done
    }

    /// All or nothing: when one version fails, what was ready before still is. `kept`: ready versions that stay as they
    /// are if their configuration does.
    fn load_versions(
        &self,
        plan: &LoadPlan,
        mut kept: ReadyVersions,
        complete: impl Fn() -> Result<Arc<ModelConfig>>,
        load: impl Fn(&Arc<ModelConfig>, i64, Generation) -> Result<ServedModel>,
    ) -> Result<(), LoadFailure> {
        let name = &plan.folder.name;
        let mut ready = ReadyVersions::new();
        let mut failures = Vec::new();
        let is_transient = matches!(self.repository.find(name), Ok(None));
        let begin = |&v: &i64| (v, self.lifecycle.begin_loading(name, v, is_transient));
        let begun: Vec<(i64, Generation)> = plan.versions.iter().map(begin).collect();
        let config = self.retry(name, complete);
        let config = config.and_then(|config| check_support(&config).map(|()| config));
        kept.retain(|version, model| {
            let has_same_config = |now: &Arc<ModelConfig>| now.raw() == model.config().raw();
            plan.versions.contains(version) && config.as_ref().is_ok_and(has_same_config)
        });
        for &(version, generation) in begun.iter().filter(|(v, _)| !kept.contains_key(v)) {
            log::info!("loading: {name}:{version}");
            let config = config.as_ref().map_err(Error::clone);
            match config.and_then(|config| self.retry(name, || load(config, version, generation))) {
                Ok(model) => {
                    ready.insert(version, Arc::new(model));
                }
                Err(error) => {
                    let failure = VersionFailure { version, error };
                    let reason = failure.reason_with_causes();
                    log::error!("failed to load '{name}' version {version}: {reason}");
                    let error = plan.hidden.hide(failure.error);
                    let failure = VersionFailure { version, error };
                    self.lifecycle.failed(name, version, generation, failure.reason());
                    failures.push(failure);
                }
            }
        }
        if !failures.is_empty() {
            for model in ready.values() {
                self.lifecycle.unloading(name, model.version(), model.generation());
            }
            return Err(LoadFailure::Versions(VersionFailures(failures)));
        }
        kept.values().for_each(|model| model.set_ready_versions(&plan.versions));
        ready.extend(kept);
        self.models.replace(name, ready);
        log::info!("successfully loaded '{name}'");
        Ok(())
    }
}

/// Refuses what the configuration asks for and this server does not do; logs it where answers are right
/// without it.
fn check_support(config: &ModelConfig) -> Result<()> {
    config.check_support()?.iter().for_each(|warning| log::warn!("{warning}"));
    Ok(())
}

/// Checks whether an ensemble fits its models, and completes its configuration with what follows from theirs.
fn join(config: &ModelConfig, models: &[Arc<ServedModel>]) -> Result<Arc<ModelConfig>> {
    let configs: Vec<_> = models.iter().map(|m| m.shared_config()).collect();
    let config = Arc::new(config.with_step_models(&configs)?);
    // The graph knows which tensors must not meet; it is made again for each version.
    ensemble_scheduler(&config, models, 0, Arc::default())?;
    Ok(config)
}

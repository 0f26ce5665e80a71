//! Loads and unloads one model: all its versions or none.

use std::sync::{Arc, Mutex};

use galatea_backend::PathRules;
use galatea_config::{ConfigDraft, ConfigSource, Diagnostic, ModelConfig, Scheduling};
use galatea_types::{Error, LockExt, Result};

use super::{
    backends::Completers,
    configuration::{self, Completion},
    dependency_error::{BrokenStep, cycle_error},
    load_failure::{Failures, LoadFailure, VersionFailure, VersionFailures},
    operations::Operations,
    panic_boundary::guarded,
    paths,
    polled_model::{Loading, PolledModel},
    version_loader::{VersionLoader, ensemble_scheduler},
};
use crate::{
    lifecycle::{Generation, Lifecycle},
    manager::plan::{Dependencies, DependencyCycle, LoadRequest, is_current},
    model_id::ModelId,
    options::EngineOptions,
    overrides::OverrideFolders,
    ready_models::{ReadyModels, ReadyVersions},
    repository::{FolderSnapshot, LoadEvent, Repository},
    served_model::ServedModel,
};

/// The result of a load that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// New versions are ready.
    Anew,
    /// Nothing changed: the ready versions were made from the present files.
    Already,
}

/// Loads models one by one, and replaces the ready versions.
pub(crate) struct ModelLoader {
    pub options: Arc<EngineOptions>,
    pub repository: Arc<Repository>,
    pub lifecycle: Arc<Lifecycle>,
    pub models: Arc<ReadyModels>,
    pub dependencies: Arc<Mutex<Dependencies>>,
    pub versions: VersionLoader,
    pub operations: Operations,
    /// The folders for the files of load requests.
    pub override_folders: Arc<OverrideFolders>,
}

impl ModelLoader {
    /// Loads a model, unless it is ready and nothing changed. `failures` are those of the models it may depend on.
    pub fn load(
        &self,
        request: &LoadRequest,
        failures: &Mutex<Failures>,
    ) -> Result<Loaded, LoadFailure> {
        let id = &request.id;
        let _one_at_a_time = self.operations.begin(id);
        if self.models.is_exiting() {
            return Err(LoadFailure::Exiting);
        }
        if request.is_dependent && !self.knows(id) {
            // It was unloaded by name meanwhile.
            return Ok(Loaded::Already);
        }
        let is_of_folder = request.overrides.files.is_empty();
        let snapshot = is_of_folder.then(|| self.repository.snapshot(id)).flatten();
        let loaded = self.dependencies.lock_unpoisoned().snapshot(id).cloned();
        let works = self.models.works(id);
        if is_current(request, works, loaded.as_ref(), snapshot.as_ref()) {
            if request.is_explicit {
                self.dependencies.lock_unpoisoned().set_explicit(id);
            }
            return Ok(Loaded::Already);
        }
        if let Some(snapshot) = &snapshot {
            warn_of_partly_seen(id, snapshot);
        }
        let unchanged = self.unchanged_versions(id, loaded.as_ref(), snapshot.as_ref());
        let before = self.dependencies.lock_unpoisoned().record(request, snapshot);
        let loaded = self.load_now(request, unchanged, failures);
        if loaded.is_err() {
            // Nothing is kept of a name in no repository, or of data that came with the request.
            let is_kept = request.overrides.is_empty() && self.is_held(id);
            self.dependencies.lock_unpoisoned().load_failed(id, before, is_kept);
            if !self.knows(id) {
                self.models.deregister(id);
            }
        }
        loaded.map(|()| Loaded::Anew)
    }

    fn knows(&self, id: &ModelId) -> bool {
        self.dependencies.lock_unpoisoned().contains(id)
    }

    /// Returns the ready versions whose files have not changed since their load: they are kept if their configuration stays.
    fn unchanged_versions(
        &self,
        id: &ModelId,
        loaded: Option<&FolderSnapshot>,
        now: Option<&FolderSnapshot>,
    ) -> ReadyVersions {
        let Some((now, loaded)) = now.zip(loaded) else { return ReadyVersions::new() };
        let mut versions = self.models.working(id);
        versions.retain(|&version, _| now.has_same_version(loaded, version));
        versions
    }

    fn load_now(
        &self,
        request: &LoadRequest,
        unchanged: ReadyVersions,
        failures: &Mutex<Failures>,
    ) -> Result<(), LoadFailure> {
        let polled = self.poll(request)?;
        if polled.is_ensemble() {
            return self.load_ensemble(&polled, failures);
        }
        let complete = || polled.complete(&self.completion(&polled.paths));
        self.load_versions(&polled, unchanged, complete, |loading| self.versions.load(loading))
    }

    /// Unloads all versions of a model after their last requests.
    pub fn unload(&self, id: &ModelId) {
        let _one_at_a_time = self.operations.begin(id);
        self.models.replace(id, ReadyVersions::new());
    }

    /// Returns true if one or more repositories have such a model.
    fn is_held(&self, id: &ModelId) -> bool {
        !matches!(self.repository.find(id), Ok(None))
    }

    /// Logs and records why an ensemble cannot be loaded.
    fn reject_ensemble(&self, id: &ModelId, source: &ConfigSource, error: Error) -> LoadFailure {
        let error = source.locate(error);
        let shown = Diagnostic::of(&error).map(|found| found.render(galatea_config::coloured));
        log::error!(model = *id.name, shown; "{error}");
        self.record_poll_failure(id, false, &error);
        LoadFailure::Invalid(error)
    }

    /// Logs and records that an ensemble needs itself.
    pub fn reject_cycle(&self, request: &LoadRequest, cycle: &DependencyCycle) -> LoadFailure {
        let id = &request.id;
        let source = guarded(|| match &request.overrides.config {
            Some(json) => Ok(ConfigSource::json(json.as_str())),
            None => {
                let folder = self.repository.lease(id)?;
                configuration::read(&folder, &self.repository.config_name, true)
            }
        });
        let source = source.unwrap_or_default();
        let draft = ConfigDraft::from(source.parse().unwrap_or_default());
        self.reject_ensemble(id, &source, cycle_error(id, cycle, &draft))
    }

    fn poll(&self, request: &LoadRequest) -> Result<PolledModel, LoadFailure> {
        let id = &request.id;
        let trusts_requests = self.options.allows_override_paths;
        let paths = paths::rules(request, &self.repository, trusts_requests);
        let completion = self.completion(&paths);
        let polled = guarded(|| {
            let (overrides, folders) = (&request.overrides, &*self.override_folders);
            PolledModel::new(id, overrides, folders, &self.repository, &completion)
        });
        let polled = polled.map_err(|error| {
            let head = format!("Poll failed for model directory '{id}':");
            let shown = shown(&head, &error);
            log::error!(model = *id.name, shown; "{head} {}", error.with_causes());
            self.record_poll_failure(id, false, &error);
            LoadFailure::Unreadable(error)
        })?;
        self.models.register(id);
        if polled.versions.is_empty() {
            let reason = polled.without_version();
            polled.log_oddities(reason.message());
            let shown = shown(&format!("cannot load '{id}':"), &reason);
            log::error!(model = *id.name, shown; "{reason}");
            self.record_poll_failure(id, true, &reason);
            return Err(LoadFailure::NoVersion(reason));
        }
        polled.log_oddities("");
        Ok(polled)
    }

    fn completion<'a>(&'a self, paths: &'a PathRules) -> Completion<'a> {
        Completion {
            backends: Completers::Backends(&self.versions.backends),
            options: &self.options,
            gpus: &self.options.gpus,
            paths,
        }
    }

    fn load_ensemble(
        &self,
        polled: &PolledModel,
        failures: &Mutex<Failures>,
    ) -> Result<(), LoadFailure> {
        let config = match guarded(|| polled.complete(&self.completion(&polled.paths))) {
            Ok(config) => config,
            Err(error) => {
                return self.load_versions(
                    polled,
                    ReadyVersions::new(),
                    || Err(error.clone()),
                    |_| Err(error.clone()),
                );
            }
        };
        let joined = self.models_of_steps(&polled.id, &config, failures).and_then(|models| {
            let config = guarded(|| join(&config, &models))?;
            Ok((models, config))
        });
        let (models, config) = joined.map_err(|error| {
            self.models.replace(&polled.id, ReadyVersions::new());
            self.reject_ensemble(&polled.id, &polled.source, error)
        })?;
        let load = |loading: Loading<'_>| self.versions.load_ensemble(loading, &models);
        // The ensemble runs on other models than before.
        self.load_versions(polled, ReadyVersions::new(), || Ok(config.clone()), load)
    }

    /// Returns the models of an ensemble's steps, which are kept as long as the ensemble is.
    fn models_of_steps(
        &self,
        id: &ModelId,
        config: &ModelConfig,
        failures: &Mutex<Failures>,
    ) -> Result<Vec<Arc<ServedModel>>> {
        let Scheduling::Ensemble(ensembling) = config.scheduling() else {
            return Ok(Vec::new());
        };
        let failures = failures.lock_unpoisoned();
        let mut models = Vec::with_capacity(ensembling.steps.len());
        for (index, step) in ensembling.steps.iter().enumerate() {
            let (wanted, version) = (&*step.model_name, step.model_version);
            let broken = BrokenStep { ensemble: id, index };
            let Some(model) = self.models.identify_step(id, wanted) else {
                return Err(broken.unavailable(wanted, &self.repository.models()));
            };
            match (self.models.version_of(&model, version), version) {
                (Some(model), _) => models.push(model),
                (None, Some(version)) if self.models.contains(&model) => {
                    let loaded: Vec<i64> = self.models.working(&model).into_keys().collect();
                    return Err(broken.version_not_loaded(&model, version, &loaded));
                }
                _ => {
                    let failure = failures.get(&model).and_then(|why| why.for_dependent(&model));
                    return Err(match failure {
                        Some(why) => Error::invalid_arg(format!(
                            "ensemble '{id}' depends on '{model}' {why}"
                        )),
                        None => broken.unavailable(&model.name, &self.repository.models()),
                    });
                }
            }
        }
        let own = models.iter().map(|model| &model.id);
        let own = own.filter(|of| of.namespace == id.namespace).map(|of| of.name.clone());
        self.dependencies.lock_unpoisoned().resolved(id, own.collect());
        Ok(models)
    }

    /// Records for the index why a model is not ready. A model that is still ready has no failure. A name that
    /// no repository has is no model: a client could fill the table with such names.
    fn record_poll_failure(&self, id: &ModelId, was_read: bool, error: &Error) {
        if !self.models.contains(id) && self.is_held(id) {
            self.lifecycle.set_poll_failure(id, was_read, error.message());
            self.record_excerpt(id, error);
        }
    }

    /// Records the line of its configuration that made a model fail, if one did.
    fn record_excerpt(&self, id: &ModelId, error: &Error) {
        let found = Diagnostic::of(error).filter(|found| found.line().is_some());
        if let Some(found) = found {
            self.lifecycle.set_excerpt(id, found.render(galatea_config::plain));
        }
    }

    /// Does a part of a load, and repeats it after a failure as often as the options say.
    fn retry<T>(&self, id: &ModelId, part: impl Fn() -> Result<T>) -> Result<T> {
        let mut done = guarded(&part);
        let retries = self.options.load_retry_count;
        for retry in 1..=retries {
            let Err(error) = &done else { break };
            if self.models.is_exiting() {
                break;
            }
            let (code, error) = (error.code().as_str(), error.with_causes());
            log::warn!(model = *id.name; "retry {retry} of {retries} to load '{id}': {code}: {error}");
            done = guarded(&part);
        }
        done
    }

    /// Gives ready versions the instances of the configuration. One that fails stays as it is.
    fn change_instances(
        &self,
        polled: &PolledModel,
        ready: &ReadyVersions,
        config: &Result<Arc<ModelConfig>>,
    ) -> Vec<VersionFailure> {
        let id = &polled.id;
        let change = |(&version, model): (&i64, &Arc<ServedModel>)| {
            let config = config.as_ref().map_err(Error::clone);
            let changed =
                config.and_then(|config| guarded(|| self.versions.change_instances(model, config)));
            let failure = changed.err().map(|error| failed(polled, version, true, error));
            let reason = failure.as_ref().map(VersionFailure::reason);
            self.lifecycle.changed(id, version, model.generation, reason.as_deref());
            failure
        };
        ready.iter().filter_map(change).collect()
    }

    /// Loads all versions or none: if one fails, the previous ones stay ready. `kept` are ready versions that
    /// stay, and get other instances, if nothing else in their configuration changes.
    fn load_versions(
        &self,
        polled: &PolledModel,
        mut kept: ReadyVersions,
        complete: impl Fn() -> Result<Arc<ModelConfig>>,
        load: impl Fn(Loading<'_>) -> Result<ServedModel>,
    ) -> Result<(), LoadFailure> {
        let id = &polled.id;
        let mut ready = ReadyVersions::new();
        let mut failures = Vec::new();
        let is_transient = !self.is_held(id);
        let begin = |&v: &i64| (v, self.lifecycle.begin_loading(id, v, is_transient));
        let begun: Vec<(i64, Generation)> = polled.versions.iter().map(begin).collect();
        kept.retain(|version, _| polled.versions.contains(version));
        let config = match kept.values().find(|ready| polled.changes_instances_only(ready)) {
            Some(ready) => guarded(|| polled.regroup(ready, &self.completion(&polled.paths))),
            None => self.retry(id, complete),
        };
        let config = config.inspect(|config| warn(config, polled));
        kept.retain(|_, ready| match &config {
            Ok(config) => self.versions.can_change_instances(ready, config),
            Err(_) => polled.changes_instances_only(ready),
        });
        for &(version, generation) in begun.iter().filter(|(v, _)| !kept.contains_key(v)) {
            log::info!(model = *id.name, version; "loading: {id}:{version}");
            let config = config.as_ref().map_err(Error::clone);
            let loaded = config.and_then(|config| {
                self.retry(id, || {
                    let started_at = self.options.clock.now();
                    load(Loading { polled, config, version, generation, started_at })
                })
            });
            match loaded {
                Ok(model) => {
                    ready.insert(version, Arc::new(model));
                }
                Err(error) => {
                    let failure = failed(polled, version, false, error);
                    self.lifecycle.failed(id, version, generation, failure.reason());
                    self.record_excerpt(id, &failure.error);
                    failures.push(failure);
                }
            }
        }
        if failures.is_empty() || config.is_err() {
            failures.extend(self.change_instances(polled, &kept, &config));
        }
        if !failures.is_empty() {
            for model in ready.values() {
                self.lifecycle.unloading(id, model.version, model.generation);
            }
            return Err(LoadFailure::Versions(VersionFailures(failures)));
        }
        kept.values()
            .for_each(|model| model.ready_versions.store(Arc::new(polled.versions.clone())));
        ready.extend(kept);
        polled.folder.lease().tell(LoadEvent::LoadComplete);
        self.models.replace(id, ready);
        log::info!(model = *id.name; "successfully loaded '{id}'");
        Ok(())
    }
}

/// Logs why a version could not be loaded, or changed while it is ready. Returns the failure for other readers.
fn failed(polled: &PolledModel, version: i64, is_ready: bool, error: Error) -> VersionFailure {
    let told = polled.explain(version, polled.hidden.hide(error.clone()));
    let failure = VersionFailure { version, is_ready, error: polled.explain(version, error) };
    let (id, reason) = (&polled.id, failure.reason_with_causes());
    let what = if is_ready { "change the instances of" } else { "load" };
    let head = format!("failed to {what} '{id}' version {version}:");
    let shown = shown(&head, &failure.error);
    log::error!(model = *id.name, version, shown; "{head} {reason}");
    VersionFailure { error: told, ..failure }
}

/// Returns the terminal's form of an error in a configuration: its line, with a caret under the place.
fn shown(head: &str, error: &Error) -> Option<String> {
    let found = Diagnostic::of(error).map(|found| found.render(galatea_config::coloured));
    Some(format!("{head}\n{}", found?))
}

/// Warned of at a load, because polls look often.
fn warn_of_partly_seen(id: &ModelId, snapshot: &FolderSnapshot) {
    for entry in snapshot.partly_seen() {
        log::warn!(
            model = *id.name;
            "'{}' of model '{id}' has too many files: the server does not notice changes of some",
            entry.display()
        );
    }
}

/// Logs the settings of the configuration that this server does not support.
fn warn(config: &ModelConfig, polled: &PolledModel) {
    for warning in config.warnings() {
        let warning = polled.source.locate_diagnostic(warning);
        let shown = warning.render(galatea_config::coloured);
        log::warn!(model = *polled.id.name, shown; "{warning}{}", warning.appendix());
    }
}

/// Checks that an ensemble fits its models, and completes its configuration from theirs.
fn join(config: &ModelConfig, models: &[Arc<ServedModel>]) -> Result<Arc<ModelConfig>> {
    let configs: Vec<_> = models.iter().map(|m| m.config.clone()).collect();
    let namespaces = models.iter().map(|m| &*m.id.namespace);
    let config = config.with_step_models(&configs)?.with_step_namespaces(namespaces);
    let config = Arc::new(config);
    // The graph knows which tensors must not be combined; it is created again for each version.
    ensemble_scheduler(&config, models, 0, Arc::default())?;
    Ok(config)
}

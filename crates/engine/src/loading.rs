//! Loading and unloading, ensembles after the models they need.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use galatea_config::Scheduling;
use galatea_types::{Error, Result};

use crate::{
    ControlMode, Engine, FailedModels, LoadOverrides, ModelFailure, ServedModel, StartupError,
    dependencies::{Wanted, circle},
    engine::ReadyVersions,
    lifecycle::{Broken, Generation},
    load_failure::{LoadFailure, Outcome, no_version},
    plan::{self, LoadPlan},
};

/// What failed, by model.
type Failures = BTreeMap<String, LoadFailure>;

impl Engine {
    /// Loads what the control mode says is loaded at start. Blocks until every model is ready or failed.
    ///
    /// # Errors
    /// Names each model that failed, with the reason; the others are ready all the same.
    pub fn load_startup_models(&self) -> Result<(), StartupError> {
        self.repository.check().map_err(StartupError::Aborted)?;
        let mut wanted = BTreeMap::new();
        for name in self.startup_names() {
            self.want(&name, LoadOverrides::default(), true, &mut wanted);
        }
        let count = wanted.len();
        let failures = self.load_all(wanted.into_values().collect(), Failures::new());
        if failures.is_empty() {
            return Ok(());
        }
        let ready_count = count.saturating_sub(failures.len());
        Err(StartupError::Models(FailedModels { ready_count, failures: causes_first(failures) }))
    }

    fn startup_names(&self) -> Vec<String> {
        let options = self.options();
        let asks_for_all = options.startup_models.iter().any(|m| m == "*");
        match options.control_mode {
            ControlMode::Explicit if !asks_for_all => options.startup_models.clone(),
            _ => self.repository.model_names(),
        }
    }

    /// Loads or reloads a model, an ensemble together with the models it needs that do not serve yet, and
    /// reloads the ensembles that depend on it. Blocks until it is ready or failed: call it where blocking
    /// is allowed.
    pub fn load_model(&self, name: &str, overrides: LoadOverrides) -> Result<()> {
        self.check_explicit()?;
        check_name(name)?;
        let mut wanted = BTreeMap::new();
        self.want(name, overrides, true, &mut wanted);
        let names: BTreeSet<String> = wanted.keys().cloned().collect();
        let mut failures = self.load_all(wanted.into_values().collect(), Failures::new());
        // Where a load failed, what served before still does.
        let is_changed =
            |name: &String| matches!(failures.get(name), None | Some(LoadFailure::Invalid(_)));
        let changed = names.into_iter().filter(is_changed).collect();
        self.load_all(self.dependencies.dependents(&changed), failures.clone());
        match failures.remove(name) {
            None => Ok(()),
            Some(failure) => Err(failure.into_error(name)),
        }
    }

    /// Starts unloading and returns; requests in flight are answered first. An unknown model is no error.
    ///
    /// Ensembles that depend on the model go too, and come back when it is loaded again. With
    /// `unload_dependents` the models go that only this ensemble needed and nobody asked for.
    pub fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.check_explicit()?;
        check_name(name)?;
        let gone = self.dependencies.forget(name, unload_dependents);
        for ensemble in self.dependencies.dependents(&gone) {
            self.take_down(&ensemble.name);
        }
        for name in gone {
            self.take_down(&name);
        }
        Ok(())
    }

    fn take_down(&self, name: &str) {
        let operation = self.operation(name);
        let _one_at_a_time = operation.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace(name, ReadyVersions::new());
    }

    /// Adds a model, and what it needs that does not serve, at any depth.
    fn want(
        &self,
        name: &str,
        overrides: LoadOverrides,
        is_explicit: bool,
        wanted: &mut BTreeMap<String, Wanted>,
    ) {
        if let Some(this) = wanted.get(name) {
            self.dependencies.note(this, is_explicit);
            return;
        }
        let needs = plan::models_of_steps(name, &overrides, self);
        let this = Wanted { name: name.to_owned(), needs, overrides };
        self.dependencies.note(&this, is_explicit);
        let needs = this.needs.clone();
        wanted.insert(name.to_owned(), this);
        for needed in needs {
            if !self.is_serving(&needed) && matches!(self.repository.locate(&needed), Ok(Some(_))) {
                self.want(&needed, LoadOverrides::default(), false, wanted);
            }
        }
    }

    /// Loads models in waves, each after those it needs. What failed, now and before, and why.
    fn load_all(&self, mut open: Vec<Wanted>, failures: Failures) -> Failures {
        let failures = Mutex::new(failures);
        while !open.is_empty() {
            let waiting: BTreeSet<String> = open.iter().map(|w| w.name.clone()).collect();
            let (wave, rest): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|w| w.needs.is_disjoint(&waiting));
            open = rest;
            if wave.is_empty() {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                open = self.fail_circles(open, &mut failures);
            }
            self.load_wave(&wave, &failures);
        }
        failures.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the ensembles out that need themselves.
    fn fail_circles(&self, open: Vec<Wanted>, failures: &mut Failures) -> Vec<Wanted> {
        let mut rest = Vec::new();
        for wanted in &open {
            let name = &wanted.name;
            let Some(last) = circle(name, &open) else {
                rest.push(wanted.clone());
                continue;
            };
            let text =
                format!("circular dependency between ensembles: {name} -> ... -> {last} -> {name}");
            failures.insert(name.clone(), self.invalid(name, text));
        }
        rest
    }

    fn load_wave(&self, wave: &[Wanted], failures: &Mutex<Failures>) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(wanted) = wave.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(failure) = self.load_now(wanted, failures) {
                    let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                    failures.insert(wanted.name.clone(), failure);
                }
            }
        };
        let threads = self.options().load_thread_count.clamp(1, wave.len().max(1));
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
    }

    fn load_now(&self, wanted: &Wanted, failures: &Mutex<Failures>) -> Outcome {
        let name = &wanted.name;
        let operation = self.operation(name);
        let _one_at_a_time = operation.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_exiting() {
            return Err(LoadFailure::Exiting);
        }
        let plan = LoadPlan::make(name, &wanted.overrides, self).map_err(|error| {
            log::error!("Poll failed for model directory '{name}': {error}");
            self.note_broken(name, Broken::Unreadable(error.message().to_owned()));
            LoadFailure::Unreadable(error)
        })?;
        if plan.versions.is_empty() {
            log::error!(
                "at least one version must be available under the version policy of model '{name}'"
            );
            self.note_broken(name, Broken::NoVersion(no_version(name)));
            return Err(LoadFailure::NoVersion);
        }
        match plan.config.scheduling() {
            Scheduling::Ensemble(_) => self.load_ensemble(plan, failures),
            _ => self.load_versions(name, &plan, |version, generation| {
                self.loader().load(&plan, version, generation)
            }),
        }
    }

    fn load_ensemble(&self, mut plan: LoadPlan, failures: &Mutex<Failures>) -> Outcome {
        let name = plan.folder.name.clone();
        let models = self
            .models_for(&plan, failures)
            .and_then(|models| self.fit(&mut plan, &models).map(|()| models))
            .map_err(|error| {
                log::error!("{error}");
                self.replace(&name, ReadyVersions::new());
                self.invalid(&name, error.message().to_owned())
            })?;
        self.load_versions(&name, &plan, |version, generation| {
            self.loader().load_ensemble(&plan, &models, version, generation)
        })
    }

    /// The models of an ensemble's steps; they are kept as long as the ensemble is.
    fn models_for(
        &self,
        plan: &LoadPlan,
        failures: &Mutex<Failures>,
    ) -> Result<Vec<Arc<ServedModel>>> {
        let name = &plan.folder.name;
        let Scheduling::Ensemble(ensembling) = plan.config.scheduling() else {
            return Ok(Vec::new());
        };
        let failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
        let mut models = Vec::with_capacity(ensembling.steps.len());
        for step in &ensembling.steps {
            let model = &*step.model_name;
            let text = match (self.model_for_step(model, step.model_version), step.model_version) {
                (Ok(model), _) => {
                    models.push(model);
                    continue;
                }
                (Err(_), Some(version)) if self.is_serving(model) => format!(
                    "ensemble '{name}' depends on '{model}' whose required version {version} is not loaded."
                ),
                _ => LoadFailure::for_dependent(failures.get(model), name, model),
            };
            return Err(Error::invalid_arg(text));
        }
        Ok(models)
    }

    /// Checks whether an ensemble fits its models, and sets what follows from them.
    fn fit(&self, plan: &mut LoadPlan, models: &[Arc<ServedModel>]) -> Result<()> {
        let configs: Vec<_> = models.iter().map(|m| m.shared_config()).collect();
        plan.config = Arc::new(plan.config.with_step_models(&configs)?);
        // The graph knows which tensors must not meet; it is made again for each version.
        self.loader().ensemble_scheduler(&plan.config, models, 0, Arc::default()).map(drop)
    }

    /// Remembers why an ensemble cannot be had.
    fn invalid(&self, name: &str, text: String) -> LoadFailure {
        self.note_broken(name, Broken::Unreadable(text.clone()));
        LoadFailure::Invalid(text)
    }

    /// Remembers why a model does not serve, for the index. What still serves is not broken, and a name no
    /// repository holds is no model: a client could fill the table with those.
    fn note_broken(&self, name: &str, why: Broken) {
        if !self.is_serving(name) && !matches!(self.repository.locate(name), Ok(None)) {
            self.lifecycle.set_broken(name, why);
        }
    }

    /// All or nothing: when one version fails, what served before goes on serving.
    fn load_versions(
        &self,
        name: &str,
        plan: &LoadPlan,
        load: impl Fn(i64, Generation) -> Result<ServedModel>,
    ) -> Outcome {
        let mut ready = ReadyVersions::new();
        let mut failures = Vec::new();
        let begun: Vec<(i64, Generation)> =
            plan.versions.iter().map(|&v| (v, self.lifecycle.begin_loading(name, v))).collect();
        for &(version, generation) in &begun {
            log::info!("loading: {name}:{version}");
            match load(version, generation) {
                Ok(model) => {
                    ready.insert(version, Arc::new(model));
                }
                Err(error) => {
                    let reason = format!("{}: {error}", error.code().as_str());
                    log::error!("failed to load '{name}' version {version}: {reason}");
                    failures.push(format!("version {version} is at UNAVAILABLE state: {reason};"));
                    self.lifecycle.failed(name, version, generation, reason);
                }
            }
        }
        if !failures.is_empty() {
            for model in ready.values() {
                self.lifecycle.unloading(name, model.version(), model.generation());
            }
            return Err(LoadFailure::Versions(failures.join("\n")));
        }
        self.replace(name, ready);
        log::info!("successfully loaded '{name}'");
        Ok(())
    }

    fn check_explicit(&self) -> Result<()> {
        match self.options().control_mode {
            ControlMode::Explicit => Ok(()),
            ControlMode::None => Err(Error::unavailable(
                "explicit model load / unload is not allowed if polling is enabled",
            )),
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

/// a name goes into a path.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid_arg("Model name cannot be empty"));
    }
    if name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        return Err(Error::invalid_arg(format!(
            "invalid model name '{name}', model name must not contain path traversal characters"
        )));
    }
    Ok(())
}

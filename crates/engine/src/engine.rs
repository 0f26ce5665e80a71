use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use galatea_telemetry::{CustomMetrics, StatisticsSnapshot, metrics::ProcessSampler};
use galatea_types::{Buffer, Error, Result};

use crate::{
    BackendRegistry, EngineOptions, ServedModel, access, dependencies::Dependencies,
    lifecycle::Lifecycle, loader::Loader, reaper, repository::Repository,
};

/// Statistics of one model version.
#[derive(Clone, Debug)]
pub struct ModelStatisticsEntry {
    pub name: String,
    pub version: i64,
    pub statistics: StatisticsSnapshot,
}

/// What a load request may bring along in place of the repository's files.
#[derive(Clone, Debug, Default)]
pub struct LoadOverrides {
    /// A model configuration as JSON.
    pub config: Option<String>,
    /// Path relative to the model's folder, and content.
    pub files: BTreeMap<String, Buffer>,
}

/// How often the log reports, during an exit, what is still waited for: as often as Triton's.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Whether a model is ready.
pub enum Readiness {
    Known(bool),
    /// Only the model itself knows: [`ServedModel::says_ready`], which blocks.
    Ask(Arc<ServedModel>),
}

/// Ready versions of one model, by number.
pub(crate) type ReadyVersions = BTreeMap<i64, Arc<ServedModel>>;

/// The server without its front ends.
pub struct Engine {
    options: EngineOptions,
    pub(crate) repository: Repository,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) dependencies: Dependencies,
    loader: Loader,
    /// What requests look their model up in: replaced whole at every change, so looking up takes no lock.
    serving: ArcSwap<HashMap<String, ReadyVersions>>,
    /// One change of `serving` at a time.
    changes: Mutex<()>,
    /// One load or unload of a model at a time; models do not wait for each other.
    operations: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    is_exiting: AtomicBool,
    pub(crate) process_sampler: ProcessSampler,
    pub(crate) custom_metrics: Arc<CustomMetrics>,
}

impl Engine {
    pub fn new(options: EngineOptions, backends: BackendRegistry) -> Arc<Self> {
        let lifecycle = Arc::new(Lifecycle::default());
        let (retired, retirements) = mpsc::channel();
        reaper::start(retirements, lifecycle.clone());
        let custom_metrics = Arc::new(CustomMetrics::default());
        Arc::new_cyclic(|engine| Self {
            repository: Repository::new(options.repositories.clone()),
            loader: Loader::new(
                backends,
                options.backend_config.clone(),
                retired,
                access::of(engine.clone(), custom_metrics.clone()),
                options.hold_until_queued,
            ),
            lifecycle,
            dependencies: Dependencies::default(),
            serving: ArcSwap::default(),
            changes: Mutex::default(),
            operations: Mutex::default(),
            is_exiting: AtomicBool::new(false),
            process_sampler: ProcessSampler::new(options.metrics.clone()),
            custom_metrics,
            options,
        })
    }

    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Version of this server, as metadata tells it.
    pub fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Protocol extensions offered, in Triton's order (H-01): only those that are built.
    pub fn extensions(&self) -> &'static [&'static str] {
        &[
            "classification",
            "model_repository",
            "model_repository(unload_dependents)",
            "schedule_policy",
            "model_configuration",
            "binary_tensor_data",
            "parameters",
            "statistics",
        ]
    }

    pub fn is_live(&self) -> bool {
        !self.is_exiting()
    }

    /// With strict readiness (the default) every model must be ready, with an instance that works; without
    /// it the server itself.
    pub fn is_ready(&self) -> bool {
        self.is_live() && (!self.options.has_strict_readiness || self.is_every_model_ready())
    }

    fn is_every_model_ready(&self) -> bool {
        let works = |model: &Arc<ServedModel>| model.is_ready();
        self.lifecycle.is_all_ready()
            && self.serving.load().values().flat_map(BTreeMap::values).all(works)
    }

    /// Whether a model is ready, as far as the server can tell; false also for one that does not exist.
    pub fn model_readiness(&self, name: &str, version: Option<i64>) -> Readiness {
        match self.model(name, version) {
            Ok(model) if model.is_ready() && model.has_readiness_check() => Readiness::Ask(model),
            found => Readiness::Known(found.is_ok_and(|model| model.is_ready())),
        }
    }

    /// [`Engine::model_readiness`], with the question asked here. Blocks while a model thinks about it.
    pub fn is_model_ready(&self, name: &str, version: Option<i64>) -> bool {
        match self.model_readiness(name, version) {
            Readiness::Known(is_ready) => is_ready,
            Readiness::Ask(model) => model.says_ready(),
        }
    }

    /// Refuses requests and loads from now on; loads under way go on. [`Engine::shutdown`] does it too.
    pub fn begin_exit(&self) {
        self.is_exiting.store(true, Ordering::Release);
    }

    pub(crate) fn is_exiting(&self) -> bool {
        self.is_exiting.load(Ordering::Acquire)
    }

    /// The ready version asked for, or the highest. Takes no lock.
    pub fn model(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        if self.is_exiting() {
            return Err(Error::unavailable("Server exiting"));
        }
        self.model_for_step(name, version)
    }

    /// [`Engine::model`] for requests that models make themselves: those in flight are finished while the
    /// server is exiting.
    pub(crate) fn model_for_step(
        &self,
        name: &str,
        version: Option<i64>,
    ) -> Result<Arc<ServedModel>> {
        let serving = self.serving.load();
        let versions = serving.get(name);
        let found = match version {
            None => versions.and_then(|v| v.last_key_value()).map(|(_, model)| model),
            Some(v) => versions.and_then(|versions| versions.get(&v)),
        };
        found.cloned().ok_or_else(|| self.not_served(name, version))
    }

    /// Why a request finds no model.
    fn not_served(&self, name: &str, version: Option<i64>) -> Error {
        let known = self.lifecycle.versions(name);
        let what = match version {
            _ if known.is_empty() => "is not found".to_owned(),
            None => "has no available versions".to_owned(),
            Some(v) if known.iter().all(|(k, _)| *k != v) => format!("version {v} is not found"),
            Some(v) => {
                let text = format!(
                    "Request for unknown model: '{name}' version {v} is not at ready state"
                );
                return Error::unavailable(text);
            }
        };
        Error::not_found(format!("Request for unknown model: '{name}' {what}"))
    }

    /// Every ready version, by name and number.
    pub(crate) fn all_ready(&self) -> Vec<Arc<ServedModel>> {
        let serving = self.serving.load();
        let mut names: Vec<_> = serving.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        names.into_iter().flat_map(|(_, versions)| versions.values().cloned()).collect()
    }

    /// Statistics of every ready version, of one model's versions, or of one version (M-56 errors).
    pub fn statistics(
        &self,
        name: Option<&str>,
        version: Option<i64>,
    ) -> Result<Vec<ModelStatisticsEntry>> {
        let wanted = |m: &Arc<ServedModel>| name.is_none_or(|n| **m.config().name() == *n);
        let mut models: Vec<_> = self.all_ready().into_iter().filter(wanted).collect();
        if let Some(name) = name.filter(|_| models.is_empty()) {
            return Err(Error::invalid_arg(format!("requested model '{name}' is not available")));
        }
        models.retain(|m| version.is_none_or(|v| m.version() == v));
        if let Some(name) = name.filter(|_| models.is_empty()) {
            let text = format!("requested model version is not available for model '{name}'");
            return Err(Error::invalid_arg(text));
        }
        Ok(models.iter().map(|m| statistics_of(m)).collect())
    }

    /// Takes no more requests, and waits until those in flight are answered and every model is unloaded.
    /// False when `deadline` passes first.
    pub fn shutdown(&self, deadline: Instant) -> bool {
        self.begin_exit();
        log::info!("Waiting for in-flight requests to complete.");
        self.wait_until_idle(deadline);
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.serving.swap(Arc::default());
        for model in old.values().flat_map(BTreeMap::values) {
            self.lifecycle.unloading(model.config().name(), model.version(), model.generation());
        }
        drop(old);
        self.wait_for_unload(deadline)
    }

    /// Waits until no model has a request in flight: one may still make requests of its own to others, which
    /// must be there until then.
    fn wait_until_idle(&self, deadline: Instant) {
        let mut report_at = Instant::now() + REPORT_INTERVAL;
        // Again from the start after each wait: the model waited for may have called another meanwhile.
        while let Some(busy) = self.all_ready().into_iter().find(|model| model.in_flight() > 0) {
            if !busy.wait_until_idle(report_at.min(deadline)) && Instant::now() >= deadline {
                return;
            }
            if Instant::now() >= report_at {
                report_at = Instant::now() + REPORT_INTERVAL;
                self.report_live_models(deadline);
            }
        }
    }

    fn report_live_models(&self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        log::info!("Timeout {left}: Found {} live models", self.lifecycle.live_count());
    }

    /// Waits in steps of a second, so that the log can count down as Triton's does.
    fn wait_for_unload(&self, deadline: Instant) -> bool {
        loop {
            let now = Instant::now();
            let step = deadline.min(now + REPORT_INTERVAL);
            if self.lifecycle.wait_until_idle(step) {
                log::info!("All models are stopped, unloading models");
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.report_live_models(deadline);
        }
    }

    /// Taken by who loads or unloads this model.
    pub(crate) fn operation(&self, name: &str) -> Arc<Mutex<()>> {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        operations.entry(name.to_owned()).or_default().clone()
    }

    pub(crate) fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Whether any version of this model serves.
    pub(crate) fn is_serving(&self, name: &str) -> bool {
        self.serving.load().contains_key(name)
    }

    /// Puts `ready` in the place of what serves now. What goes is drained once its last request has left.
    pub(crate) fn replace(&self, name: &str, ready: ReadyVersions) {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for (&version, model) in &ready {
            self.lifecycle.loaded(name, version, model.generation());
        }
        let mut serving = HashMap::clone(&self.serving.load());
        let old = if ready.is_empty() {
            serving.remove(name)
        } else {
            serving.insert(name.to_owned(), ready)
        };
        for (version, model) in old.iter().flatten() {
            self.lifecycle.unloading(name, *version, model.generation());
        }
        self.serving.store(Arc::new(serving));
    }
}

fn statistics_of(model: &ServedModel) -> ModelStatisticsEntry {
    ModelStatisticsEntry {
        name: model.config().name().to_string(),
        version: model.version(),
        statistics: model.statistics().snapshot(),
    }
}

//! The server without its front ends.

use std::{sync::Arc, time::Instant};

use galatea_gpu::GpuMetrics;
use galatea_scheduler::SequenceMemory;
use galatea_telemetry::{
    CustomMetric,
    metrics::{CpuMetrics, FigureSource},
};
use galatea_types::{LockExt, Result, product};

use crate::{
    availability::Availability,
    backend_registry::BackendRegistry,
    control::Control,
    exit,
    index::{self, IndexEntry},
    lifecycle::{Lifecycle, VersionState},
    manager::{ModelManager, PollOutcome},
    metrics::ServerMetrics,
    options::EngineOptions,
    overrides::LoadOverrides,
    ready_models::ReadyModels,
    regions::{RegionTable, SHARED_MEMORY},
    repository::{ConfigName, Repository, RepositoryRoot},
    served_model::ServedModel,
    server_access,
    startup::StartupError,
    statistics::{self, ModelStatisticsEntry},
};

/// Protocol extensions offered, in Triton's order: only those that are built.
const EXTENSIONS: &[&str] = &[
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "logging",
];

/// What front ends talk to: look-up of ready models, metadata, readiness, statistics; and the way to the manager,
/// which loads and unloads.
pub struct Engine {
    options: Arc<EngineOptions>,
    repository: Arc<Repository>,
    lifecycle: Arc<Lifecycle>,
    models: Arc<ReadyModels>,
    manager: Arc<ModelManager>,
    control: Control,
    metrics: ServerMetrics,
    availability: Availability,
    regions: Arc<RegionTable>,
}

impl Engine {
    /// A server that has loaded nothing yet: see [`Engine::load_startup_models`].
    pub fn new(mut options: EngineOptions, backends: BackendRegistry) -> Arc<Self> {
        options.execution.sequence_memory = Arc::new(SequenceMemory::of(options.memory.clone()));
        let options = Arc::new(options);
        let repository = Arc::new(Repository::new(
            options.repositories.clone(),
            ConfigName::new(&options.model_config_name),
            options.has_namespaces,
        ));
        let lifecycle = Arc::new(Lifecycle::by_clock(options.clock.clone()));
        let models = Arc::new(ReadyModels::new(lifecycle.clone(), options.has_namespaces));
        let metrics = ServerMetrics::new(options.clone());
        let manager = Arc::new_cyclic(|manager| {
            let server = server_access::new(manager.clone(), metrics.custom.clone(), &options);
            ModelManager::new(
                &options,
                repository.clone(),
                lifecycle.clone(),
                models.clone(),
                backends,
                server,
            )
        });
        let control = Control::new(manager.clone(), options.load_thread_count);
        let availability = Availability::default();
        let regions = Arc::new(RegionTable::new(SHARED_MEMORY, options.memory.clone()));
        Arc::new(Self {
            options,
            repository,
            lifecycle,
            models,
            manager,
            control,
            metrics,
            availability,
            regions,
        })
    }

    /// What it was made with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Returns the shared memory regions that clients have registered.
    pub fn regions(&self) -> &Arc<RegionTable> {
        &self.regions
    }

    /// The version that metadata reports: that of the contract, see [`product::CONTRACT_VERSION`].
    pub fn version(&self) -> &'static str {
        product::CONTRACT_VERSION
    }

    /// Protocol extensions offered, in Triton's order.
    pub fn extensions(&self) -> &'static [&'static str] {
        EXTENSIONS
    }

    /// Whether requests are accepted: until the exit begins, and not at all where the start failed.
    pub fn is_live(&self) -> bool {
        self.models.check_serving().is_ok()
    }

    /// Where the server is between its start and its exit.
    pub fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Not while it starts and when it is about to exit. With strict readiness (the default) every model must be ready, with an instance that works; without
    /// it the server itself.
    pub fn is_ready(&self) -> bool {
        self.availability.is_serving()
            && self.is_live()
            && (!self.options.has_strict_readiness
                || self.lifecycle.is_all_ready() && self.models.all_work())
    }

    /// The repositories that did not answer when they were last asked: where each is, and why. What is loaded from them
    /// stays, so that the server is as ready as before.
    pub fn repository_problems(&self) -> Vec<(String, String)> {
        self.repository.problems()
    }

    /// What blocks, without blocking: loads, unloads, and questions that take a while.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The ready version asked for, or the highest. Takes no lock.
    ///
    /// # Errors
    /// `NotFound` for a model or version nobody loaded, `Unavailable` for one that is not ready and while the
    /// server is exiting.
    pub fn model(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        self.models.for_client(name, version)
    }

    /// Loads the models that the control mode wants at start. Blocks until every one is ready or failed.
    ///
    /// # Errors
    /// Name each model that failed, with the reason; the others are ready all the same. After
    /// [`StartupError::Aborted`] the server is neither live nor ready, and everything else is answered with
    /// "Server not ready".
    pub fn load_startup_models(&self) -> Result<(), StartupError> {
        self.manager.load_startup_models()
    }

    /// Loads or reloads a model, an ensemble together with the models it needs that are not ready yet, and
    /// reloads the ensembles that depend on it. Blocks until it is ready or failed: front ends use
    /// [`Control::load`].
    ///
    /// # Errors
    /// Why it failed to load; the version that was ready before still is.
    pub fn load_model(&self, name: &str, overrides: LoadOverrides) -> Result<()> {
        self.manager.load(name, overrides)
    }

    /// Starts unloading and returns; requests in flight are answered first. An unknown model is no error.
    ///
    /// Ensembles that depend on the model are unloaded too, and loaded again with it. With `unload_dependents`
    /// so are the models that only this ensemble needed and nobody asked for.
    ///
    /// # Errors
    /// `Unavailable` when the control mode does not allow it, `InvalidArg` for a name that cannot be one.
    pub fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.manager.unload(name, unload_dependents)
    }

    /// Looks at the repositories once: loads what is new or changed and looked the same at the last look, and unloads
    /// what is gone. `retries`: also loads again what failed as it is. Blocks until all of that is done. For
    /// [`ControlMode::Poll`](crate::ControlMode::Poll).
    pub fn poll_repositories(&self, retries: bool) -> PollOutcome {
        self.manager.poll(retries)
    }

    /// Adds a repository: its models can be loaded from now on. Reads its folder.
    ///
    /// # Errors
    /// `AlreadyExists` where one is at that place or gives a model that name, `InvalidArg` where it cannot be read,
    /// `Unsupported` unless the control mode is [`ControlMode::Explicit`](crate::ControlMode::Explicit).
    pub fn add_repository(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        self.manager.add_repository(root)
    }

    /// Removes the repository at a place. What was loaded from it stays until it is unloaded; what is known of the
    /// others of its models is forgotten. Reads its folder.
    pub fn remove_repository(&self, place: &str) {
        self.manager.remove_repository(place);
    }

    /// Whether no version of a model is loading, ready, or at work on its last requests.
    pub fn is_unloaded(&self, name: &str) -> bool {
        let is_over = |state: &VersionState| matches!(state, VersionState::Unavailable { .. });
        let named = self.lifecycle.models().into_iter().filter(|id| *id.name == *name);
        named.flat_map(|id| self.lifecycle.versions(&id)).all(|(_, state)| is_over(&state))
    }

    /// Another number after every change of a model's state. What is added to the repositories does not change it before
    /// it is loaded.
    pub fn revision(&self) -> u64 {
        self.lifecycle.revision()
    }

    /// Every ready version, by name and number. Who keeps one keeps it from being unloaded.
    pub fn ready_models(&self) -> Vec<Arc<ServedModel>> {
        self.models.all()
    }

    /// Whether clients may load and unload models.
    ///
    /// # Errors
    /// `Unavailable` where the control mode does not allow it, or the server takes no requests.
    pub fn check_control(&self) -> Result<()> {
        self.manager.check_control()
    }

    /// The last figures of the GPUs, where they are sampled.
    pub fn gpu_metrics(&self) -> Vec<GpuMetrics> {
        self.options.gpus.latest.latest()
    }

    /// CPU and memory of the machine; `None`: they are not asked for (`--allow-cpu-metrics=false`), or not known.
    pub fn cpu_metrics(&self) -> Option<CpuMetrics> {
        self.metrics.process.sample().cpu
    }

    /// What is in the repositories and what was ever loaded, sorted by namespace, name and version.
    ///
    /// # Errors
    /// `Unavailable` where the start failed.
    pub fn repository_index(&self, ready_only: bool) -> Result<Vec<IndexEntry>> {
        self.check_initialized()?;
        Ok(index::list(&self.repository, &self.lifecycle, ready_only))
    }

    fn check_initialized(&self) -> Result<()> {
        if self.models.is_exiting() { Ok(()) } else { self.models.check_serving() }
    }

    /// Statistics of every ready version, of one model's versions, or of one version.
    ///
    /// # Errors
    /// `InvalidArg` for a model or version that is not ready.
    pub fn statistics(
        &self,
        name: Option<&str>,
        version: Option<i64>,
    ) -> Result<Vec<ModelStatisticsEntry>> {
        self.check_initialized()?;
        statistics::select(self.models.all(), name, version)
    }

    /// All metric families in Prometheus text form.
    pub fn metrics_text(&self) -> String {
        self.metrics.render(&self.models.all(), |figures| {
            self.availability.add_figures(figures);
            self.control.add_figures(figures);
            self.lifecycle.add_figures(figures);
        })
    }

    /// Adds figures of another part of the server to [`Engine::metrics_text`].
    pub fn add_figures(&self, source: FigureSource) {
        self.metrics.sources.lock_unpoisoned().push(source);
    }

    /// The first `most` series of a family that models define themselves.
    pub fn custom_metrics(&self, family: &str, most: usize) -> Vec<CustomMetric> {
        self.metrics.custom.series(family, most)
    }

    /// Answers the requests that wait for models and that nobody waits for any more: what they hold is free before
    /// their turn comes. Returns how many there were.
    pub fn release_abandoned(&self) -> usize {
        self.models.all().iter().map(|model| model.scheduler.release_abandoned()).sum()
    }

    /// Notes what the models are at, from which [`Engine::metrics_text`] tells their load. Meant for twice a second.
    pub fn sample_load(&self) {
        let now = self.options.clock.now();
        for queue in self.models.all().iter().filter_map(|model| model.instances.as_ref()) {
            queue.sample_load(now);
        }
    }

    /// How loaded the server is: as much as the most loaded of its models ([`ServedModel::load`]).
    pub fn load(&self) -> Option<f64> {
        let now = self.options.clock.now();
        self.models.all().iter().filter_map(|model| model.load(now)).reduce(f64::max)
    }

    /// Refuses requests and loads from now on; loads under way are finished. [`Engine::shutdown`] does it too.
    pub fn begin_exit(&self) {
        self.models.begin_exit();
        self.availability.finish_start();
        self.control.refuse_loads();
    }

    /// Waits until no model has a request in flight, or `deadline` passes, without being ready: for clients whose
    /// connections are still open, and who are told to go away with each response. [`shutdown`](Self::shutdown) is next.
    pub fn drain(&self, deadline: Instant) {
        self.availability.begin_leaving();
        exit::drain(&self.models, &self.lifecycle, deadline);
    }

    /// Takes no more requests, and waits until those in flight are answered and every model is unloaded.
    /// False when `deadline` passes first.
    pub fn shutdown(&self, deadline: Instant) -> bool {
        self.begin_exit();
        let is_clean = exit::run(&self.models, &self.lifecycle, deadline);
        // Whatever is left at the deadline ends with the process.
        self.manager.loader.override_folders.close();
        is_clean
    }
}

//! The server without its front ends.

use std::{sync::Arc, time::Instant};

use galatea_gpu::GpuMetrics;
use galatea_scheduler::SequenceMemory;
use galatea_telemetry::{
    CustomMetric, ServerCounts, ServerLoad,
    metrics::{CpuMetrics, FigureSource},
};
use galatea_types::{Error, LockExt, Result, product};

use crate::{
    availability::Availability,
    backend_registry::BackendRegistry,
    control::Control,
    exit,
    index::{self, IndexEntry},
    lifecycle::{Lifecycle, VersionState},
    manager::{ModelManager, PollOutcome},
    metrics::{ServerMetrics, server_load},
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

/// Protocol extensions in Triton's order; only those that are implemented.
const EXTENSIONS: &[&str] = &[
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
];

/// The interface for front ends: look-up of ready models, metadata, readiness and statistics. It passes loads and unloads to
/// the manager.
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
    /// Creates a server that has loaded nothing: see [`Engine::load_startup_models`].
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
        let regions = RegionTable::new(SHARED_MEMORY, options.memory.clone())
            .with_gpus(options.gpus.shared_memory.clone());
        Arc::new(Self {
            options,
            repository,
            lifecycle,
            models,
            manager,
            control,
            metrics,
            availability,
            regions: Arc::new(regions),
        })
    }

    /// Returns the options that it was created with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Returns the shared memory regions that clients have registered.
    pub fn regions(&self) -> &Arc<RegionTable> {
        &self.regions
    }

    /// Returns the same for a client that registers or unregisters regions.
    ///
    /// # Errors
    /// `Unsupported` if clients may not do that.
    pub fn client_regions(&self) -> Result<&Arc<RegionTable>> {
        if self.options.allows_client_regions {
            return Ok(&self.regions);
        }
        Err(Error::unsupported(
            "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
        ))
    }

    /// Returns the version in the metadata: that of the contract, see [`product::CONTRACT_VERSION`].
    pub fn version(&self) -> &'static str {
        product::CONTRACT_VERSION
    }

    /// Returns the protocol extensions in Triton's order.
    pub fn extensions(&self) -> &'static [&'static str] {
        EXTENSIONS
    }

    /// Returns true if requests are accepted: until the exit begins, and never if the start failed.
    pub fn is_live(&self) -> bool {
        self.models.check_serving().is_ok()
    }

    /// Returns the stage of the server between its start and its exit.
    pub fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Returns the readiness; false during the start and before the exit. With strict readiness (the default), every model must
    /// be ready and have a working instance; without it, only the server itself.
    pub fn is_ready(&self) -> bool {
        self.availability.is_serving()
            && self.is_live()
            && (!self.options.has_strict_readiness
                || self.lifecycle.is_all_ready() && self.models.all_work())
    }

    /// Returns the repositories that did not answer last, each with its place and the reason. Models that were loaded from them
    /// stay, so the readiness of the server does not change.
    pub fn repository_problems(&self) -> Vec<(String, String)> {
        self.repository.problems()
    }

    /// Returns the control, which does blocking work without blocking: loads, unloads and slow queries.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Returns the requested ready version, or the highest. Takes no lock.
    ///
    /// # Errors
    /// `NotFound` for a model or version that was never loaded, `Unavailable` for one that is not ready, and while the server
    /// is exiting.
    pub fn model(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        self.models.for_client(name, version)
    }

    /// Loads the models that the control mode wants at start. Blocks until every one is ready or failed.
    ///
    /// # Errors
    /// Each model that failed, with the reason; the others are ready. After [`StartupError::Aborted`] the
    /// server is neither live nor ready, and all other calls are answered with "Server not ready".
    pub fn load_startup_models(&self) -> Result<(), StartupError> {
        self.manager.load_startup_models()
    }

    /// Loads or reloads a model. Also loads the models that an ensemble needs and that are not ready, and reloads the
    /// ensembles that depend on the model. Blocks until it is ready or failed: front ends use [`Control::load`].
    ///
    /// # Errors
    /// The reason of the failure; a version that was ready before still is.
    pub fn load_model(&self, name: &str, overrides: LoadOverrides) -> Result<()> {
        self.manager.load(name, overrides)
    }

    /// Starts an unload and returns; requests in flight are answered first. An unknown model is no error.
    ///
    /// Ensembles that depend on the model are unloaded too, and loaded again with it. With `unload_dependents`, models that
    /// only this ensemble needed and nobody asked for are also unloaded.
    ///
    /// # Errors
    /// `Unavailable` when the control mode does not allow it, `InvalidArg` for an invalid name.
    pub fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()> {
        self.manager.unload(name, unload_dependents)
    }

    /// Checks the repositories once: loads new or changed models that look the same as at the last check, and unloads removed
    /// ones. With `retries`, also loads unchanged models that failed. Blocks until all of that is done. For
    /// [`ControlMode::Poll`](crate::ControlMode::Poll).
    pub fn poll_repositories(&self, retries: bool) -> PollOutcome {
        self.manager.poll(retries)
    }

    /// Adds a repository, whose models can be loaded from now on. Reads its folder.
    ///
    /// # Errors
    /// `AlreadyExists` if one is at that place or gives a model that name, `InvalidArg` if it cannot be read,
    /// `Unsupported` unless the control mode is [`ControlMode::Explicit`](crate::ControlMode::Explicit).
    pub fn add_repository(&self, root: Arc<dyn RepositoryRoot>) -> Result<()> {
        self.manager.add_repository(root)
    }

    /// Removes the repository at a place. Models that were loaded from it stay until they are unloaded; its other models are
    /// forgotten. Reads its folder.
    pub fn remove_repository(&self, place: &str) {
        self.manager.remove_repository(place);
    }

    /// Returns true if no version of a model is loading, ready, or executing its last requests.
    pub fn is_unloaded(&self, name: &str) -> bool {
        let is_over = |state: &VersionState| matches!(state, VersionState::Unavailable { .. });
        let named = self.lifecycle.models().into_iter().filter(|id| *id.name == *name);
        named.flat_map(|id| self.lifecycle.versions(&id)).all(|(_, state)| is_over(&state))
    }

    /// Returns a number that differs after every change of a model's state. A new file in a repository does not
    /// change it before the model is loaded.
    pub fn revision(&self) -> u64 {
        self.lifecycle.revision()
    }

    /// Returns every ready version, by name and number. A caller that keeps one prevents its unload.
    pub fn ready_models(&self) -> Vec<Arc<ServedModel>> {
        self.models.all()
    }

    /// Checks that clients may load and unload models.
    ///
    /// # Errors
    /// `Unavailable` if the control mode does not allow it, or the server takes no requests.
    pub fn check_control(&self) -> Result<()> {
        self.manager.check_control()
    }

    /// Returns the latest metrics of the GPUs, if they are sampled.
    pub fn gpu_metrics(&self) -> Vec<GpuMetrics> {
        self.options.gpus.latest.latest()
    }

    /// Returns CPU and memory of the machine; `None` if they are off (`--allow-cpu-metrics=false`) or unknown.
    pub fn cpu_metrics(&self) -> Option<CpuMetrics> {
        self.metrics.process.sample().cpu
    }

    /// Returns the models in the repositories and those that were ever loaded, sorted by namespace, name and version.
    ///
    /// # Errors
    /// `Unavailable` if the start failed.
    pub fn repository_index(&self, ready_only: bool) -> Result<Vec<IndexEntry>> {
        self.check_initialized()?;
        Ok(index::list(&self.repository, &self.lifecycle, ready_only))
    }

    fn check_initialized(&self) -> Result<()> {
        if self.models.is_exiting() { Ok(()) } else { self.models.check_serving() }
    }

    /// Returns the statistics of every ready version, of one model's versions, or of one version.
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

    /// Returns all metric families in the Prometheus text format.
    pub fn metrics_text(&self) -> String {
        self.metrics.render(&self.models.all(), |figures| {
            self.availability.add_figures(figures);
            self.control.add_figures(figures);
            self.lifecycle.add_figures(figures);
        })
    }

    /// Returns the metrics of the server without those of its models, in the same format. Cheap with any number of models: the
    /// queues are read now, the load is that of the last [`sample_load`](Self::sample_load).
    pub fn server_metrics_text(&self) -> String {
        let mut counts =
            ServerCounts { load: self.server_load().counts.load, ..Default::default() };
        self.models.for_each(|model| server_load::count_requests(model, &mut counts));
        self.metrics.render_server(counts, |figures| {
            self.availability.add_figures(figures);
            self.control.add_figures(figures);
        })
    }

    /// Adds metrics of another part of the server to [`Engine::metrics_text`].
    pub fn add_figures(&self, source: FigureSource) {
        self.metrics.sources.lock_unpoisoned().push(source);
    }

    /// Returns the first `most` series of a metric family that models define themselves.
    pub fn custom_metrics(&self, family: &str, most: usize) -> Vec<CustomMetric> {
        self.metrics.custom.series(family, most)
    }

    /// Answers waiting requests whose clients have gone, so that their memory is free before their turn comes. Returns the
    /// number of these requests.
    pub fn release_abandoned(&self) -> usize {
        self.models.all().iter().map(|model| model.scheduler.release_abandoned()).sum()
    }

    /// Records the load for [`Engine::metrics_text`] and [`Engine::server_load`]. Intended for twice a second.
    pub fn sample_load(&self) {
        let now = self.options.clock.now();
        let models = self.models.all();
        for queue in models.iter().filter_map(|model| model.instances.as_ref()) {
            queue.sample_load(now);
        }
        self.metrics.load.sample(&models, now, &self.options.memory);
    }

    /// Returns the load of the server as of the last [`sample_load`](Self::sample_load). Takes no lock.
    pub fn server_load(&self) -> Arc<ServerLoad> {
        self.metrics.load.latest()
    }

    /// Returns the load of the server, which is that of its most loaded model ([`ServedModel::load`]).
    pub fn load(&self) -> Option<f64> {
        let now = self.options.clock.now();
        self.models.all().iter().filter_map(|model| model.load(now)).reduce(f64::max)
    }

    /// Refuses requests and loads from now on; running loads are finished. [`Engine::shutdown`] does this too.
    pub fn begin_exit(&self) {
        self.models.begin_exit();
        self.availability.finish_start();
        self.control.refuse_loads();
    }

    /// Waits, without being ready, until no model has a request in flight or `deadline` passes. For open connections, whose
    /// clients are told to disconnect with each response. [`shutdown`](Self::shutdown) is next.
    pub fn drain(&self, deadline: Instant) {
        self.availability.begin_leaving();
        exit::drain(&self.models, &self.lifecycle, deadline);
    }

    /// Takes no more requests, and waits until those in flight are answered and every model is unloaded.
    /// Returns false if `deadline` passes first.
    pub fn shutdown(&self, deadline: Instant) -> bool {
        self.begin_exit();
        let is_clean = exit::run(&self.models, &self.lifecycle, deadline);
        // Models that are left at the deadline end with the process.
        self.manager.loader.override_folders.close();
        is_clean
    }
}

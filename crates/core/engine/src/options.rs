//! The options of the engine. Its creator sets them; nothing is read from the process.

use std::{path::PathBuf, sync::Arc, time::Duration};

use galatea_backend::Devices;
use galatea_config::MissingGpus;
use galatea_gpu::{IpcMemory, SharedGpuMetrics};
use galatea_response_cache::ResponseCache;
use galatea_scheduler::{ExecutionRules, TestHold};
use galatea_telemetry::{CustomMetrics, metrics::MetricsOptions};
use galatea_types::{Clock, MemoryBudget};

use crate::{
    agents::AgentRegistry, backend_settings::BackendSettings, manager::ReloadJitter,
    repository::RepositoryRoot,
};

/// The rule that decides which models are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMode {
    /// Everything in the repositories, at start.
    None,
    /// Everything in the repositories, as it is added, changed and removed: see
    /// [`Engine::poll_repositories`](crate::Engine::poll_repositories).
    Poll,
    /// The models named at start, then those of load and unload calls.
    Explicit,
}

/// The options of the engine: one field for each command line flag that concerns it.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Name of the server in its metadata.
    pub server_id: String,
    /// The repositories with models. A name must be in only one of them, unless `has_namespaces` is set.
    pub repositories: Vec<Arc<dyn RepositoryRoot>>,
    /// If true, each repository is a namespace, so that several may have models of one name.
    pub has_namespaces: bool,
    /// The rule that decides which models are loaded.
    pub control_mode: ControlMode,
    /// Models to load at start in explicit mode; the single entry `*` means all.
    pub startup_models: Vec<String>,
    /// If true, the server is ready only if every model is.
    pub has_strict_readiness: bool,
    /// If true, backends complete configurations, and a model may have none.
    pub auto_completes_config: bool,
    /// Models with a `configs/<name>.pbtxt` are loaded with that instead of `config.pbtxt`; empty for none.
    pub model_config_name: String,
    /// If true, configurations in load requests may name files outside of their model: environments of Python models, libraries
    /// of operators.
    pub allows_override_paths: bool,
    /// If true, clients may register shared memory regions.
    pub allows_client_regions: bool,
    /// The number of models loaded at a time.
    pub load_thread_count: usize,
    /// The number of retries after a version failed to load.
    pub load_retry_count: usize,
    /// The delay between a change that a look at the repositories finds and its load.
    pub reload_jitter: ReloadJitter,
    /// The folder with other servers' backends: `<name>/batchstrategy.so` is a strategy for all models of one.
    pub backend_directory: Option<PathBuf>,
    /// The repository agents that configurations may name; by default `checksum`.
    pub agents: AgentRegistry,
    /// The settings of `--backend-config`.
    pub backend_config: BackendSettings,
    /// The time that an exit waits for requests in flight.
    pub exit_timeout: Duration,
    /// Options of the metrics that [`Engine::metrics_text`](crate::Engine::metrics_text) reports.
    pub metrics: MetricsOptions,
    /// The GPUs of the machine; by default none.
    pub gpus: GpuOptions,
    /// The devices whose memory models may allocate; by default none.
    pub devices: Devices,
    /// The number of queued requests before which a model executes none. Triton's test suite needs it to form batches
    /// deterministically.
    pub hold: TestHold,
    /// If true, instances of a model are started one after the other instead of all at once.
    pub starts_instances_one_by_one: bool,
    /// If true, a model refuses requests that it has no time for.
    pub has_admission: bool,
    /// Limits on the executions of models and placement of their threads; by default none.
    pub execution: ExecutionRules,
    /// The cache for responses of models with `response_cache`; `None`: all their requests are executed.
    pub response_cache: Option<Arc<dyn ResponseCache>>,
    /// The metric families that models and libraries define.
    pub custom_metrics: Arc<CustomMetrics>,
    /// The limit on the memory of requests and responses; by default none.
    pub memory: Arc<MemoryBudget>,
    /// The clock of the engine and of the schedulers of its models.
    pub clock: Clock,
}

/// The GPUs of the machine, as the program found them.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Numbers of the GPUs that models may use, ascending.
    pub available: Vec<u32>,
    /// The handling of instance groups whose GPUs are missing.
    pub missing: MissingGpus,
    /// The lowest CUDA compute capability that was required of them, for the text of refusals.
    pub min_compute_capability: f64,
    /// The driver that opens memory of GPUs which clients share; `None` if none is installed.
    pub shared_memory: Option<Arc<dyn IpcMemory>>,
    /// The metrics that a sampler publishes, if there is one.
    pub latest: SharedGpuMetrics,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            server_id: "triton".to_owned(),
            repositories: Vec::new(),
            has_namespaces: false,
            control_mode: ControlMode::None,
            startup_models: Vec::new(),
            has_strict_readiness: true,
            auto_completes_config: true,
            model_config_name: String::new(),
            allows_override_paths: false,
            allows_client_regions: false,
            load_thread_count: 4,
            load_retry_count: 0,
            reload_jitter: ReloadJitter::default(),
            backend_directory: None,
            agents: AgentRegistry::default(),
            backend_config: BackendSettings::default(),
            exit_timeout: Duration::from_secs(30),
            metrics: MetricsOptions::default(),
            gpus: GpuOptions::default(),
            devices: Devices::default(),
            hold: TestHold::default(),
            starts_instances_one_by_one: false,
            has_admission: false,
            execution: ExecutionRules::default(),
            response_cache: None,
            custom_metrics: Arc::default(),
            memory: MemoryBudget::unlimited(),
            clock: Clock::system(),
        }
    }
}

//! How the engine behaves: its creator decides, nothing is read from the process.

use std::{path::PathBuf, sync::Arc, time::Duration};

use galatea_backend::Devices;
use galatea_config::MissingGpus;
use galatea_gpu::SharedGpuMetrics;
use galatea_response_cache::ResponseCache;
use galatea_scheduler::{ExecutionRules, TestHold};
use galatea_telemetry::metrics::MetricsOptions;
use galatea_types::{Clock, MemoryBudget};

use crate::{agents::AgentRegistry, backend_settings::BackendSettings, repository::RepositoryRoot};

/// Who decides which models are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMode {
    /// Everything in the repositories, at start.
    None,
    /// Everything in the repositories, as it is added, changed and removed: see
    /// [`Engine::poll_repositories`](crate::Engine::poll_repositories).
    Poll,
    /// What is named at start, then by load and unload calls.
    Explicit,
}

/// How the engine behaves; one field per command line flag that concerns it.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Name of the server in its metadata.
    pub server_id: String,
    /// Where models are looked for; a name must be in one of them only, but with `has_namespaces`.
    pub repositories: Vec<Arc<dyn RepositoryRoot>>,
    /// Whether each repository is a namespace, so that several may hold models of one name.
    pub has_namespaces: bool,
    /// Who decides which models are loaded.
    pub control_mode: ControlMode,
    /// Explicit mode: models to load at start; the single entry `*` means all.
    pub startup_models: Vec<String>,
    /// Whether the server is ready only if every model is.
    pub has_strict_readiness: bool,
    /// Whether backends complete configurations, and a model may have none.
    pub auto_completes_config: bool,
    /// Models that have a `configs/<name>.pbtxt` are loaded with that instead of `config.pbtxt`; empty for none.
    pub model_config_name: String,
    /// Whether configurations in load requests may name files outside of their model: environments of Python models,
    /// libraries of operators.
    pub allows_override_paths: bool,
    /// How many models are loaded at a time.
    pub load_thread_count: usize,
    /// How often a load of a version that failed is tried again.
    pub load_retry_count: usize,
    /// Where other servers keep their backends: `<name>/batchstrategy.so` is a strategy for all models of one.
    pub backend_directory: Option<PathBuf>,
    /// The repository agents that configurations may name: by default `checksum`.
    pub agents: AgentRegistry,
    /// `--backend-config`.
    pub backend_config: BackendSettings,
    /// How long an exit waits for requests in flight.
    pub exit_timeout: Duration,
    /// What [`Engine::metrics_text`](crate::Engine::metrics_text) reports besides the models.
    pub metrics: MetricsOptions,
    /// The machine's GPUs: by default none.
    pub gpus: GpuOptions,
    /// The devices whose memory models may allocate: by default none.
    pub devices: Devices,
    /// No model executes anything until so many requests are queued for it. Triton's test suite needs it, to form batches
    /// deterministically.
    pub hold: TestHold,
    /// Instances of a model are started one after the other, and not all at the same time.
    pub starts_instances_one_by_one: bool,
    /// What limits the executions of models, and where their threads run: by default nothing does.
    pub execution: ExecutionRules,
    /// Where the responses of models with `response_cache` are kept; `None`: their requests are all executed.
    pub response_cache: Option<Arc<dyn ResponseCache>>,
    /// What bounds the memory of requests and responses: by default nothing.
    pub memory: Arc<MemoryBudget>,
    /// Tells the engine and the schedulers of its models all times.
    pub clock: Clock,
}

/// The GPUs of the machine, as the program found them.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Numbers of those that models may use, ascending.
    pub available: Vec<u32>,
    /// What becomes of instance groups whose GPUs are not there.
    pub missing: MissingGpus,
    /// Lowest CUDA compute capability that was required of them, for the text of refusals.
    pub min_compute_capability: f64,
    /// Where a sampler publishes their metrics, if there is one.
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
            load_thread_count: 4,
            load_retry_count: 0,
            backend_directory: None,
            agents: AgentRegistry::default(),
            backend_config: BackendSettings::default(),
            exit_timeout: Duration::from_secs(30),
            metrics: MetricsOptions::default(),
            gpus: GpuOptions::default(),
            devices: Devices::default(),
            hold: TestHold::default(),
            starts_instances_one_by_one: false,
            execution: ExecutionRules::default(),
            response_cache: None,
            memory: MemoryBudget::unlimited(),
            clock: Clock::system(),
        }
    }
}

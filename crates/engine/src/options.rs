use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use galatea_backend::Backend;
use galatea_telemetry::metrics::{GpuBoard, MetricsOptions};
use galatea_types::Result;

/// Who decides which models are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMode {
    /// Everything in the repositories, at start.
    None,
    /// What is named at start, then by load and unload calls.
    Explicit,
}

/// How the engine behaves; one field per command line flag that concerns it.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub server_id: String,
    pub repositories: Vec<PathBuf>,
    pub control_mode: ControlMode,
    /// Explicit mode: models to load at start; the single entry `*` means all.
    pub startup_models: Vec<String>,
    pub has_strict_readiness: bool,
    pub auto_completes_config: bool,
    pub load_thread_count: usize,
    /// `--backend-config`: by backend name; the empty name holds for all.
    pub backend_config: BTreeMap<String, BTreeMap<String, String>>,
    pub exit_timeout: Duration,
    /// What [`Engine::metrics_text`](crate::Engine::metrics_text) tells besides the models.
    pub metrics: MetricsOptions,
    /// The machine's GPUs: by default none.
    pub gpus: GpuOptions,
    /// No model executes anything until this many requests are queued for it; 0 turns that off. Triton's test
    /// suite needs it, to form batches deterministically.
    pub hold_until_queued: usize,
}

/// What the engine knows about GPUs; whoever starts it looks for them.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Numbers of those that models may use, ascending.
    pub available: Vec<u32>,
    /// Lowest CUDA compute capability that was asked of them; told in refusals.
    pub min_compute_capability: f64,
    /// Where their figures appear, if somebody watches them.
    pub board: GpuBoard,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            server_id: "triton".to_owned(),
            repositories: Vec::new(),
            control_mode: ControlMode::None,
            startup_models: Vec::new(),
            has_strict_readiness: true,
            auto_completes_config: true,
            load_thread_count: 4,
            backend_config: BTreeMap::new(),
            exit_timeout: Duration::from_secs(30),
            metrics: MetricsOptions::default(),
            gpus: GpuOptions::default(),
            hold_until_queued: 0,
        }
    }
}

type OpenBackend = Box<dyn Fn() -> Result<Arc<dyn Backend>> + Send + Sync>;
type SearchBackend = Box<dyn Fn(&str) -> Option<Result<Arc<dyn Backend>>> + Send + Sync>;

/// The backends the program offers, each opened when the first model needs it.
#[derive(Default)]
pub struct BackendRegistry {
    known: BTreeMap<String, OpenBackend>,
    /// Asked for names that are not known.
    search: Option<SearchBackend>,
}

impl BackendRegistry {
    pub fn register(
        &mut self,
        name: impl Into<String>,
        open: impl Fn() -> Result<Arc<dyn Backend>> + Send + Sync + 'static,
    ) {
        self.known.insert(name.into(), Box::new(open));
    }

    /// How a backend that is not registered is found, e.g. in a folder of backends. `None`: it is not.
    pub fn search(
        &mut self,
        search: impl Fn(&str) -> Option<Result<Arc<dyn Backend>>> + Send + Sync + 'static,
    ) {
        self.search = Some(Box::new(search));
    }

    pub(crate) fn open(&self, name: &str) -> Option<Result<Arc<dyn Backend>>> {
        match self.known.get(name) {
            Some(open) => Some(open()),
            None => self.search.as_ref().and_then(|search| search(name)),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }
}

impl fmt::Debug for BackendRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

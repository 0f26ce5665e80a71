//! The options of `serve` as given, before they are checked against each other.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use galatea_backend_python::WorkerOptions;
use galatea_command_line::Notice;
use galatea_engine::{EngineOptions, ResourceSupply};
use galatea_frontend::{ClientLimitSettings, ConnectionSettings};
use galatea_grpc::GrpcOptions;
use galatea_http::HttpOptions;
use galatea_serve::{MemorySize, RepositoryCacheOptions, RuntimeOptions};
use galatea_telemetry::{access_log::AccessTarget, logger::LogSettings};

/// The options of `serve` as given, before they are checked against each other.
#[derive(Debug, Default)]
pub struct ServeFlags {
    pub log: LogSettings,
    /// `--access-log`
    pub access_log: Option<AccessTarget>,
    /// `--auth-policy`
    pub auth_policy: Option<PathBuf>,
    /// Without the repositories, which are opened when the server starts.
    pub engine: EngineOptions,
    /// Model repositories, as they were given.
    pub repositories: Vec<PathBuf>,
    /// What stands without an option: repositories, folders of models, model files.
    pub paths: Vec<PathBuf>,
    pub repository_cache: RepositoryCacheOptions,
    pub exits_on_error: bool,
    /// Between two looks at the repositories in mode poll.
    pub repository_poll_secs: u64,
    /// How long a server asked to stop serves on, no longer ready.
    pub drain_delay: Duration,
    pub http: EndpointFlags,
    pub grpc: EndpointFlags,
    pub metrics: EndpointFlags,
    /// `None`: the one of HTTP.
    pub metrics_address: Option<String>,
    pub allows_sagemaker: bool,
    pub sagemaker_port: u16,
    /// Ports that the other services may have beside SageMaker, the last one included.
    pub sagemaker_safe_ports: Option<(i64, i64)>,
    /// `None`: what the environment of the platform says.
    pub allows_vertex_ai: Option<bool>,
    pub vertex_ai_port: Option<u16>,
    pub vertex_ai_default_model: String,
    /// `--console`; `None`: not given.
    pub has_console: Option<bool>,
    /// `--https-cert` and others; it is on where one is given.
    pub http_tls: TlsFlags,
    /// `--grpc-use-ssl` and others.
    pub grpc_tls: TlsFlags,
    /// `--metrics-https`
    pub encrypts_metrics: bool,
    pub http_options: HttpOptions,
    pub grpc_options: GrpcOptions,
    /// What one client may have in hand.
    pub client_limits: ClientLimitSettings,
    /// Without the number of connections.
    pub connections: ConnectionSettings,
    /// `None`: as many as the limit of open file descriptors allows.
    pub max_connections: Option<usize>,
    pub runtimes: RuntimeOptions,
    /// What the processes of Python models may see and do.
    pub python: WorkerOptions,
    pub allows_gpu_metrics: bool,
    pub memory_budget: MemorySize,
    pub repoagent_directory: String,
    /// `--rate-limit`, in whatever letters it was given.
    pub rate_limit: String,
    /// `--rate-limit-resource`
    pub rate_limit_resources: Vec<ResourceSupply>,
    pub trace: TraceFlags,
    /// `--hardened`: the defaults of a server that strangers may reach.
    pub is_hardened: bool,
    /// `--disable-auto-complete-config`
    pub is_auto_complete_disabled: bool,
    /// `--cache-config` and `--response-cache-byte-size`
    pub cache: CacheFlags,
    /// Deprecated options and those without effect, as given.
    pub notices: Vec<Notice>,
    /// Words that are no options.
    pub(super) words: Vec<String>,
}

/// Options that each service has.
#[derive(Debug, Default)]
pub struct EndpointFlags {
    /// `None`: what the environment of a platform says.
    pub is_allowed: Option<bool>,
    pub address: String,
    /// 0: a free one. Any number, as long as the service is off.
    pub port: i64,
    pub reuses_port: bool,
}

/// TLS of one service, as given. Empty paths count as not given.
#[derive(Debug, Default)]
pub struct TlsFlags {
    pub is_on: bool,
    pub is_mutual: bool,
    pub certificates: PathBuf,
    pub key: PathBuf,
    pub client_roots: PathBuf,
}

/// The response cache, as given.
#[derive(Debug, Default)]
pub struct CacheFlags {
    /// By the name of the cache, in the order they came.
    pub settings: BTreeMap<String, Vec<(String, String)>>,
    /// `--response-cache-byte-size`
    pub local_size: Option<u64>,
    /// Where Triton has the libraries of its caches.
    pub directory: String,
}

/// What the options of tracing ask for.
#[derive(Debug, Default)]
pub struct TraceFlags {
    /// The warning about the first level that is not OFF.
    pub(super) asked: Option<Notice>,
    /// A level of OFF wins over all others.
    pub(super) is_off: bool,
    /// Settings of `--trace-config` that a deprecated option has too, as given.
    pub(super) configured: Vec<&'static str>,
}

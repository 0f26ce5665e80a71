//! The options of `serve` as given, before they are checked against each other.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_backend_python::WorkerOptions;
use galatea_command_line::Notice;
use galatea_engine::ResourceSupply;
use galatea_otlp::ExportOptions;
use galatea_serve::ServeOptions;
use galatea_trace::{Levels, TraceMode};

#[derive(Debug, Default)]
pub struct ServeFlags {
    /// Options that the server gets unchanged, without settings that depend on several options or on the environment.
    pub serve: ServeOptions,
    /// Seconds between two looks at the repositories in mode poll.
    pub repository_poll_secs: u64,
    pub http: EndpointFlags,
    pub grpc: EndpointFlags,
    pub metrics: EndpointFlags,
    /// Address of metrics; `None`: that of HTTP.
    pub metrics_address: Option<String>,
    pub allows_sagemaker: bool,
    pub sagemaker_port: u16,
    /// Range of ports, both ends included, that the other services may have besides SageMaker.
    pub sagemaker_safe_ports: Option<(i64, i64)>,
    /// Vertex AI is served; `None`: the environment of the platform decides.
    pub allows_vertex_ai: Option<bool>,
    pub vertex_ai_port: Option<u16>,
    pub vertex_ai_default_model: String,
    /// `--console`; `None`: not given.
    pub has_console: Option<bool>,
    /// `--https-cert` and related options; TLS is on if one is given.
    pub http_tls: TlsFlags,
    /// `--grpc-use-ssl` and related options.
    pub grpc_tls: TlsFlags,
    /// Permissions of the processes of Python models.
    pub python: WorkerOptions,
    pub repoagent_directory: String,
    /// `--rate-limit`, in the case it was given.
    pub rate_limit: String,
    pub rate_limit_resources: Vec<ResourceSupply>,
    pub trace: TraceFlags,
    pub is_auto_complete_disabled: bool,
    /// `--cache-config` and `--response-cache-byte-size`.
    pub cache: CacheFlags,
    /// Deprecated options and those without effect, as given.
    pub notices: Vec<Notice>,
    /// Words that are not options.
    pub(super) words: Vec<String>,
}

/// Options that each service has.
#[derive(Debug, Default)]
pub struct EndpointFlags {
    /// The service is on; `None`: the environment of a platform decides.
    pub is_allowed: Option<bool>,
    pub address: String,
    /// The port; 0: any free one. Any number is accepted while the service is off.
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
    /// Settings by the name of the cache, in the order given.
    pub settings: BTreeMap<String, Vec<(String, String)>>,
    /// `--response-cache-byte-size`.
    pub local_size: Option<u64>,
    /// Triton's folder of cache libraries.
    pub directory: String,
}

/// The options of tracing.
#[derive(Debug, Default)]
pub struct TraceFlags {
    pub(super) mode: TraceMode,
    /// The values of `--trace-config`.
    pub(super) config: TraceValues,
    /// The values of the deprecated options.
    pub(super) deprecated: TraceValues,
    /// `--trace-level=OFF` was given, which overrides all other levels.
    pub(super) is_off: bool,
    /// Settings of mode `triton` that Triton only shows.
    pub(super) others: Vec<(String, String)>,
    /// Settings of mode `opentelemetry`.
    pub(super) export: ExportOptions,
    /// The same as given, which clients are shown.
    pub(super) export_shown: Vec<(String, String)>,
    /// Settings that there are not, as given.
    pub(super) unknown: Vec<String>,
    /// Settings of `--trace-config` that also have a deprecated option, as given.
    pub(super) configured: Vec<&'static str>,
}

/// Values of tracing in one form of the options.
#[derive(Debug, Default)]
pub(super) struct TraceValues {
    pub levels: Option<Levels>,
    pub rate: Option<i32>,
    pub count: Option<i32>,
    pub log_frequency: Option<i32>,
    pub file: Option<String>,
}

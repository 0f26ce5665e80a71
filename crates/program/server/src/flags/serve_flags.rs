//! The options of `serve` as given, before they are checked against each other.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_backend_python::WorkerOptions;
use galatea_command_line::Notice;
use galatea_engine::ResourceSupply;
use galatea_serve::ServeOptions;

#[derive(Debug, Default)]
pub struct ServeFlags {
    /// What the server gets as it was given. Without what follows from several options, and from the environment.
    pub serve: ServeOptions,
    /// Between two looks at the repositories in mode poll.
    pub repository_poll_secs: u64,
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
    /// What the processes of Python models may see and do.
    pub python: WorkerOptions,
    pub repoagent_directory: String,
    /// `--rate-limit`, in whatever letters it was given.
    pub rate_limit: String,
    pub rate_limit_resources: Vec<ResourceSupply>,
    pub trace: TraceFlags,
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

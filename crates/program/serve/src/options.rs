//! What a server needs to know to start: its creator decides.

use std::{path::PathBuf, time::Duration};

use galatea_backend_python::WorkerRules;
use galatea_engine::EngineOptions;
use galatea_frontend::{ClientLimitSettings, ConnectionSettings, TlsFiles};
use galatea_grpc::GrpcOptions;
use galatea_http::{CloudFrontEnd, HttpOptions};
use galatea_response_cache::RedisSettings;
use galatea_runtimes::ProgressMaker;
use galatea_telemetry::{access_log::AccessTarget, logger::LogSettings};
use galatea_types::{Environment, Stop};

use crate::{
    backends::native::EarlyBackend, memory::MemorySize,
    repositories::remote::RepositoryCacheOptions,
};

/// Everything a server needs to know to start.
#[derive(Debug, Default)]
pub struct ServeOptions {
    /// As the log was configured: the format is that of the access log too.
    pub log: LogSettings,
    /// Where the access log goes; `None`: there is none.
    pub access_log: Option<AccessTarget>,
    /// The file of who may do what; `None`: anybody may do anything.
    pub auth_policy: Option<PathBuf>,
    /// Without a policy, nobody may change what the server is.
    pub is_hardened: bool,
    /// Without the repositories, which are opened when the server starts.
    pub engine: EngineOptions,
    /// Model repositories, as they were given.
    pub repositories: Vec<PathBuf>,
    /// Repositories, folders of models and model files that were given without an option.
    pub paths: Vec<PathBuf>,
    /// Of those that are not on this machine.
    pub repository_cache: RepositoryCacheOptions,
    /// Whether the start fails where a model does.
    pub exits_on_error: bool,
    /// `None`: no response is kept.
    pub response_cache: Option<CacheSettings>,
    /// Between two looks at the repositories, where they are polled.
    pub poll_interval: Option<Duration>,
    /// How long a server asked to stop serves on, no longer ready.
    pub drain_delay: Duration,
    /// `None`: not served.
    pub http: Option<Endpoint>,
    /// `None`: not served.
    pub grpc: Option<Endpoint>,
    /// `None`: not served.
    pub metrics: Option<Endpoint>,
    /// Front ends of cloud platforms.
    pub clouds: Vec<CloudOptions>,
    /// The files of services that are encrypted.
    pub tls: TlsOptions,
    /// Options of HTTP alone.
    pub http_options: HttpOptions,
    /// Options of gRPC alone.
    pub grpc_options: GrpcOptions,
    /// What one client may have in hand.
    pub client_limits: ClientLimitSettings,
    /// Without the number of connections.
    pub connections: ConnectionSettings,
    /// `None`: as many as the limit of open file descriptors allows.
    pub max_connections: Option<usize>,
    /// The native libraries of the backends.
    pub runtimes: RuntimeOptions,
    /// What the processes of Python models may see and do.
    pub python: WorkerRules,
    /// Most memory that requests and responses may take.
    pub memory_budget: MemorySize,
    /// Whether the GPUs are watched.
    pub has_gpu_metrics: bool,
    /// For the log at start: deprecated flags, and flags without effect.
    pub notes: Vec<Note>,
    /// The options in force, as the table at start shows them.
    pub rows: Vec<(String, String)>,
    /// A backend that is opened already.
    pub early: EarlyBackend,
}

/// A line of the log about an option.
#[derive(Debug, PartialEq, Eq)]
pub enum Note {
    /// Its effect may not be meant.
    Warning(String),
    /// It has no effect.
    Info(String),
}

/// Where native runtime libraries come from. Empty paths count as not given.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// Whether a library that is not installed is fetched.
    pub may_download: bool,
    /// The library of an ONNX Runtime.
    pub onnxruntime_lib: Option<PathBuf>,
    /// The library of a TensorFlow.
    pub tensorflow_lib: Option<PathBuf>,
    /// The C library of an OpenVINO.
    pub openvino_lib: Option<PathBuf>,
    /// Folder of a libtorch.
    pub libtorch: Option<PathBuf>,
    /// Only where one was given: its default is the place of another server's libraries.
    pub backend_directory: Option<PathBuf>,
    /// The variables of the process: they name libraries and folders where no flag does, and have the credentials of
    /// repositories that are not on this machine.
    pub environment: Environment,
    /// A request ends downloads, and what else makes libraries and environments.
    pub stop: Stop,
    /// Shows how far these are.
    pub progress: ProgressMaker,
}

/// Where one of the services listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As the port collision text names it.
    pub service: &'static str,
    /// A name or number of this machine.
    pub address: String,
    /// 0: a free one.
    pub port: u16,
    /// Whether other servers may have the same port.
    pub reuses_port: bool,
}

impl Endpoint {
    /// The option that gives a service its port.
    pub fn port_option(service: &str) -> String {
        format!("--{}-port", service.to_ascii_lowercase().replace(' ', "-"))
    }
}

/// Who speaks TLS.
#[derive(Debug, Default)]
pub struct TlsOptions {
    /// `None`: HTTP is not encrypted.
    pub http: Option<TlsFiles>,
    /// `None`: gRPC is not encrypted.
    pub grpc: Option<TlsFiles>,
    /// Whether the metrics are, with what HTTP has.
    pub metrics: bool,
}

/// A front end of a cloud platform.
#[derive(Clone, Debug)]
pub struct CloudOptions {
    /// Its place.
    pub endpoint: Endpoint,
    /// The platform, and what it asks for. Without a model Vertex AI gets the only one that is loaded.
    pub platform: CloudFrontEnd,
}

/// Where responses are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheSettings {
    /// In the memory of this server, so many bytes at most.
    Local(usize),
    /// In a Redis server.
    Redis(Box<RedisSettings>),
}

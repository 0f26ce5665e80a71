//! The options with which a server starts.

use std::{fmt, path::PathBuf, time::Duration};

use galatea_backend_python::WorkerRules;
use galatea_engine::EngineOptions;
use galatea_frontend::{ClientLimitSettings, ConnectionSettings, TlsFiles};
use galatea_grpc::GrpcOptions;
use galatea_http::{CloudFrontEnd, HttpOptions};
use galatea_otlp::ExportOptions;
use galatea_response_cache::RedisSettings;
use galatea_runtimes::ProgressMaker;
use galatea_telemetry::{access_log::AccessTarget, logger::LogSettings};
use galatea_trace::TraceOptions;
pub use galatea_triton_cache::CacheSettings as LibraryCacheSettings;
use galatea_types::{Environment, Stop};

use crate::{
    backends::native::EarlyBackend, memory::MemorySize,
    repositories::remote::RepositoryCacheOptions,
};

/// All options with which a server starts.
#[derive(Debug, Default)]
pub struct ServeOptions {
    /// The log's configuration; the access log has the same format.
    pub log: LogSettings,
    /// The destination of the access log; `None`: there is none.
    pub access_log: Option<AccessTarget>,
    /// The traces of requests: `--trace-config`.
    pub trace: TraceOptions,
    /// The way of spans to a collector, in mode `opentelemetry`.
    pub trace_export: ExportOptions,
    /// The file of clients' permissions; `None`: anybody may do anything.
    pub auth_policy: Option<PathBuf>,
    /// Without a policy, nobody may change the server.
    pub is_hardened: bool,
    /// Options of the engine, without the repositories, which are opened when the server starts.
    pub engine: EngineOptions,
    /// Model repositories, as given.
    pub repositories: Vec<PathBuf>,
    /// Repositories, folders of models and model files that were given without an option.
    pub paths: Vec<PathBuf>,
    /// The cache of repositories that are not on this machine.
    pub repository_cache: RepositoryCacheOptions,
    /// The start fails if a model does.
    pub exits_on_error: bool,
    /// Settings of the response cache; `None`: no response is kept.
    pub response_cache: Option<CacheSettings>,
    /// Time between two looks at the repositories; `None`: they are not polled.
    pub poll_interval: Option<Duration>,
    /// Time in which a server that was asked to stop still serves, but is not ready.
    pub drain_delay: Duration,
    /// The Unix socket at which a new server takes over; `None`: none can.
    pub takeover: Option<PathBuf>,
    /// The endpoint of HTTP; `None`: not served.
    pub http: Option<Endpoint>,
    /// The endpoint of gRPC; `None`: not served.
    pub grpc: Option<Endpoint>,
    /// The endpoint of metrics; `None`: not served.
    pub metrics: Option<Endpoint>,
    /// Front ends of cloud platforms.
    pub clouds: Vec<CloudOptions>,
    /// The files of services that are encrypted.
    pub tls: TlsOptions,
    /// Options of HTTP alone.
    pub http_options: HttpOptions,
    /// Options of gRPC alone.
    pub grpc_options: GrpcOptions,
    /// Limits of one client's requests in progress.
    pub client_limits: ClientLimitSettings,
    /// Settings of connections, without their number.
    pub connections: ConnectionSettings,
    /// Most connections; `None`: as many as the limit of open file descriptors allows.
    pub max_connections: Option<usize>,
    /// The native libraries of the backends.
    pub runtimes: RuntimeOptions,
    /// Permissions of the processes of Python models.
    pub python: WorkerRules,
    /// Most memory that requests and responses may take.
    pub memory_budget: MemorySize,
    /// The GPUs are watched.
    pub has_gpu_metrics: bool,
    /// Notes for the log at start: deprecated flags, and flags without effect.
    pub notes: Vec<Note>,
    /// The options in force, as the table at start shows them.
    pub rows: Vec<(String, String)>,
    /// Triton's folder of repository agents.
    pub agent_directory: PathBuf,
    /// A backend that is already open.
    pub early: EarlyBackend,
}

/// A line of the log about an option.
#[derive(Debug, PartialEq, Eq)]
pub enum Note {
    /// The option may have an effect that the user does not expect.
    Warning(String),
    /// The option has no effect.
    Info(String),
}

/// The sources of native runtime libraries. Empty paths count as not given.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// A library that is not installed is fetched.
    pub may_download: bool,
    /// The library of an ONNX Runtime.
    pub onnxruntime_lib: Option<PathBuf>,
    /// The library of a TensorFlow.
    pub tensorflow_lib: Option<PathBuf>,
    /// The C library of an OpenVINO.
    pub openvino_lib: Option<PathBuf>,
    /// The folder of a libtorch.
    pub libtorch: Option<PathBuf>,
    /// The backend directory, only if one was given: its default holds another server's libraries.
    pub backend_directory: Option<PathBuf>,
    /// The environment variables of the process. They name libraries and folders for missing flags, and have the credentials of
    /// remote repositories.
    pub environment: Environment,
    /// A request to stop ends downloads, and the making of libraries and environments.
    pub stop: Stop,
    /// Shows the progress of these.
    pub progress: ProgressMaker,
}

/// The endpoint of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The name of the service in the message about a port collision.
    pub service: &'static str,
    /// The place where it listens.
    pub place: Place,
}

/// The place where a service listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A port of TCP.
    Port(PortPlace),
    /// The file of a Unix socket, with a path that the system can take.
    Socket(PathBuf),
}

/// A port at an address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlace {
    /// A host name or address of this machine.
    pub address: String,
    /// The port; 0: any free one.
    pub port: u16,
    /// Other servers may have the same port.
    pub is_shared: bool,
}

impl Endpoint {
    /// Returns the option that sets a service's port.
    pub fn port_option(service: &str) -> String {
        option(service, "port")
    }

    /// Returns the option that sets a service's address.
    pub fn address_option(service: &str) -> String {
        option(service, "address")
    }

    /// Returns the port; `None` for a Unix socket.
    pub fn port(&self) -> Option<&PortPlace> {
        match &self.place {
            Place::Port(port) => Some(port),
            Place::Socket(_) => None,
        }
    }
}

fn option(service: &str, what: &str) -> String {
    format!("--{}-{what}", service.to_ascii_lowercase().replace(' ', "-"))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(PortPlace { address, port, .. }) => write!(f, "{address}:{port}"),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The services with TLS.
#[derive(Debug, Default)]
pub struct TlsOptions {
    /// Files of HTTP; `None`: it is not encrypted.
    pub http: Option<TlsFiles>,
    /// Files of gRPC; `None`: it is not encrypted.
    pub grpc: Option<TlsFiles>,
    /// The metrics are encrypted, with the files of HTTP.
    pub metrics: bool,
}

/// A front end of a cloud platform.
#[derive(Clone, Debug)]
pub struct CloudOptions {
    /// Its address and port.
    pub endpoint: Endpoint,
    /// The platform and its settings. Without a named model, Vertex AI gets the only one that is loaded.
    pub platform: CloudFrontEnd,
}

/// The storage of cached responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheSettings {
    /// The memory of this server, with at most this many bytes.
    Local(usize),
    /// A Redis server.
    Redis(Box<RedisSettings>),
    /// A library made for Triton.
    Library(LibraryCacheSettings),
}

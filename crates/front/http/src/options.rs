//! The options of the HTTP front end.

use std::sync::Arc;

use galatea_console::SharedAbout;
use galatea_frontend::{
    Authentication, ClientLimits, ConnectionLimits, HeaderForwarding, HeavyWork, RequestLog,
    RestrictedApis, Tls,
};
use galatea_types::MemoryBudget;

/// The part of the metrics that a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsScope {
    /// All of them.
    All,
    /// Those of the server, without those of models.
    Server,
}

/// The options of the HTTP front end, one field for each of its command line flags.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// `--http-thread-count`: the most threads. No more are started than there are cores.
    pub thread_count: usize,
    /// `--http-max-input-size`: the longest request body, in bytes.
    pub max_input_size: usize,
    /// `--http-restricted-api`: the calls that need a header known only to some clients.
    pub restricted_apis: RestrictedApis,
    /// `--auth-policy`: the policy about callers, shared by the front ends.
    pub authentication: Authentication,
    /// `--client-...` and `--connection-max-...`: the limits of one client, shared by the front ends.
    pub client_limits: ClientLimits,
    /// `--http-header-forward-pattern`: the headers of an inference request that become its parameters.
    pub header_forwarding: HeaderForwarding,
    /// The ports, options and runtimes of the server, shown in the console.
    pub about: SharedAbout,
    /// `--http-metrics`: the metrics that are served too; a request may ask for others.
    pub metrics: Option<MetricsScope>,
    /// `--send-load-reports=always`: each answer to an inference request has a load report.
    pub always_reports_load: bool,
    /// `--console`: serves the web console.
    pub has_console: bool,
    /// The log of requests, shared by the front ends.
    pub requests: RequestLog,
    /// The connections of the server, shared by all its front ends.
    pub limits: Arc<ConnectionLimits>,
    /// The pool for work on long requests, shared by the front ends.
    pub heavy_work: Arc<HeavyWork>,
    /// `--memory-budget`: the memory for requests and responses of all front ends.
    pub memory: Arc<MemoryBudget>,
    /// `--https-cert` and others: TLS for clients; `None` for connections without encryption.
    pub tls: Option<Arc<Tls>>,
    /// `--metrics-https`: TLS for the metrics.
    pub metrics_tls: Option<Arc<Tls>>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            thread_count: 8,
            max_input_size: 64 << 20,
            restricted_apis: RestrictedApis::default(),
            authentication: Authentication::default(),
            client_limits: ClientLimits::default(),
            header_forwarding: HeaderForwarding::default(),
            about: SharedAbout::default(),
            metrics: None,
            always_reports_load: false,
            has_console: false,
            requests: RequestLog::default(),
            limits: Arc::default(),
            heavy_work: Arc::default(),
            memory: MemoryBudget::unlimited(),
            tls: None,
            metrics_tls: None,
        }
    }
}

//! The options of the HTTP front end.

use std::sync::Arc;

use galatea_console::SharedAbout;
use galatea_frontend::{
    Authentication, ClientLimits, ConnectionLimits, HeaderForwarding, HeavyWork, RequestLog,
    RestrictedApis, Tls,
};
use galatea_types::MemoryBudget;

/// How the HTTP front end behaves; one field per command line flag that concerns it.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// `--http-thread-count`: most threads; no more are started than there are cores.
    pub thread_count: usize,
    /// `--http-max-input-size`: longest request body, in bytes.
    pub max_input_size: usize,
    /// `--http-restricted-api`: which calls need a header that only some clients know.
    pub restricted_apis: RestrictedApis,
    /// `--auth-policy`: who may call what; shared by the front ends too.
    pub authentication: Authentication,
    /// `--client-...` and `--connection-max-...`: what one client may have in hand; shared by the front ends too.
    pub client_limits: ClientLimits,
    /// `--http-header-forward-pattern`: which headers of an inference request become parameters of it.
    pub header_forwarding: HeaderForwarding,
    /// What the page shows of the server itself: its ports, options and runtimes.
    pub about: SharedAbout,
    /// `--console`: whether there is a page to look at the server with.
    pub has_console: bool,
    /// Where requests are told of; shared by the front ends too.
    pub requests: RequestLog,
    /// The connections of the server, which all its front ends share.
    pub limits: Arc<ConnectionLimits>,
    /// Takes work on long requests; shared by the front ends too.
    pub heavy_work: Arc<HeavyWork>,
    /// `--memory-budget`: what requests and responses may take, over all front ends.
    pub memory: Arc<MemoryBudget>,
    /// `--https-cert` and others: TLS for clients; `None`: connections are not encrypted.
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

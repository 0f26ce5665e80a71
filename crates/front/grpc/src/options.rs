//! The options of the gRPC front end.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use galatea_frontend::{
    Authentication, ClientLimits, ConnectionLimits, HeaderForwarding, HeavyWork, RequestLog,
    RestrictedApis, Tls,
};
use galatea_types::MemoryBudget;

use crate::PingRules;

/// The compression level of inference responses, for clients that accept one. As in the common library, it chooses the
/// format, not the effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseCompression {
    /// No compression.
    #[default]
    None,
    /// gzip, or else a format that the client accepts.
    Low,
    /// deflate, or else a format that the client accepts.
    Medium,
    /// The same as medium.
    High,
}

/// The options of the gRPC front end.
#[derive(Clone, Debug)]
pub struct GrpcOptions {
    /// The longest accepted message, in bytes.
    pub max_message_size: usize,
    /// The longest sent message, in bytes. A longer response becomes an error.
    pub max_response_size: usize,
    /// The compression level of inference responses.
    pub response_compression: ResponseCompression,
    /// `--send-load-reports=always`: the trailers of each inference call have a load report.
    pub always_reports_load: bool,
    /// The calls that need metadata known only to some clients.
    pub restricted_protocols: RestrictedApis,
    /// The policy about callers, shared by the front ends.
    pub authentication: Authentication,
    /// `--client-...` and `--connection-max-...`: the limits of one client, shared by the front ends.
    pub client_limits: ClientLimits,
    /// The metadata of an inference call that becomes parameters of its requests.
    pub header_forwarding: HeaderForwarding,
    /// The most bytes of responses that may wait for a client that does not read its stream.
    pub max_unread: usize,
    /// The memory budget of requests and responses in the whole server, in bytes.
    pub memory: Arc<MemoryBudget>,
    /// Threads that serve connections. One handles some ten thousand small requests a second.
    pub thread_count: usize,
    /// A connection without traffic is probed after this long ...
    pub keepalive_time: Duration,
    /// ... and closed if the client does not answer the probe within this.
    pub keepalive_timeout: Duration,
    /// The limits on pings of clients.
    pub pings: PingRules,
    /// A connection of about this age refuses new calls, so that clients open another. `None`: no limit.
    pub max_connection_age: Option<Duration>,
    /// The time that its calls get then; `None`: as long as they need.
    pub max_connection_age_grace: Option<Duration>,
    /// The log of requests, shared by the front ends.
    pub requests: RequestLog,
    /// The connections of the server, shared by all its front ends.
    pub limits: Arc<ConnectionLimits>,
    /// The pool for work on long requests, shared by the front ends.
    pub heavy_work: Arc<HeavyWork>,
    /// `--grpc-use-ssl` and others: TLS for clients; `None` for connections without encryption.
    pub tls: Option<Arc<Tls>>,
}

impl Default for GrpcOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            max_message_size: DEFAULT_MESSAGE_SIZE,
            max_response_size: LONGEST_MESSAGE,
            response_compression: ResponseCompression::None,
            always_reports_load: false,
            restricted_protocols: RestrictedApis::default(),
            authentication: Authentication::default(),
            client_limits: ClientLimits::default(),
            header_forwarding: HeaderForwarding::default(),
            max_unread: 256 << 20,
            memory: MemoryBudget::unlimited(),
            // Triton uses two by default; further cores are for the models.
            thread_count: cores.min(2),
            keepalive_time: Duration::from_millis(7_200_000),
            keepalive_timeout: Duration::from_millis(20_000),
            pings: PingRules::default(),
            max_connection_age: None,
            max_connection_age_grace: None,
            requests: RequestLog::default(),
            limits: Arc::default(),
            heavy_work: Arc::default(),
            tls: None,
        }
    }
}

/// The default equals the longest HTTP body. Triton accepts any length that gRPC can carry.
const DEFAULT_MESSAGE_SIZE: usize = 64 << 20;
/// The longest message that gRPC implementations agree on: most store the length in a signed 32-bit number.
const LONGEST_MESSAGE: usize = i32::MAX as usize;

//! The options of the gRPC front end.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use galatea_frontend::{
    Authentication, ClientLimits, ConnectionLimits, HeaderForwarding, HeavyWork, RequestLog,
    RestrictedApis, Tls,
};
use galatea_types::MemoryBudget;

use crate::PingRules;

/// How much the responses of inferences are compressed, for clients that take it. It chooses the format, not the effort:
/// so it does in the common library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseCompression {
    /// Not at all.
    #[default]
    None,
    /// gzip, or what the client takes.
    Low,
    /// deflate, or what the client takes.
    Medium,
    /// As medium.
    High,
}

/// How the gRPC front end behaves.
#[derive(Clone, Debug)]
pub struct GrpcOptions {
    /// Longest message taken, in bytes.
    pub max_message_size: usize,
    /// Longest message sent, in bytes. A longer response becomes an error.
    pub max_response_size: usize,
    /// How much responses of inferences are compressed.
    pub response_compression: ResponseCompression,
    /// Which calls need metadata that only some clients know.
    pub restricted_protocols: RestrictedApis,
    /// Who may call what; shared by the front ends too.
    pub authentication: Authentication,
    /// `--client-...` and `--connection-max-...`: what one client may have in hand; shared by the front ends too.
    pub client_limits: ClientLimits,
    /// Which metadata of an inference call becomes parameters of its requests.
    pub header_forwarding: HeaderForwarding,
    /// Responses that may wait for a client that does not read its stream, in bytes.
    pub max_unread: usize,
    /// Bytes that requests and responses may take in the whole server.
    pub memory: Arc<MemoryBudget>,
    /// Threads that serve connections. One keeps up with some ten thousand small requests a second.
    pub thread_count: usize,
    /// A connection without traffic is probed after this long ...
    pub keepalive_time: Duration,
    /// ... and closed when the probe is not answered within this.
    pub keepalive_timeout: Duration,
    /// Which pings of clients are too many.
    pub pings: PingRules,
    /// A connection of about this age takes no new calls: clients open another. `None`: it lives as long as its client wants.
    pub max_connection_age: Option<Duration>,
    /// How long the calls on it may go on then; `None`: as long as they take.
    pub max_connection_age_grace: Option<Duration>,
    /// Where requests are told of; shared by the front ends too.
    pub requests: RequestLog,
    /// The connections of the server, which all its front ends share.
    pub limits: Arc<ConnectionLimits>,
    /// Takes work on long requests; shared by the front ends too.
    pub heavy_work: Arc<HeavyWork>,
    /// `--grpc-use-ssl` and others: TLS for clients; `None`: connections are not encrypted.
    pub tls: Option<Arc<Tls>>,
}

impl Default for GrpcOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            max_message_size: DEFAULT_MESSAGE_SIZE,
            max_response_size: LONGEST_MESSAGE,
            response_compression: ResponseCompression::None,
            restricted_protocols: RestrictedApis::default(),
            authentication: Authentication::default(),
            client_limits: ClientLimits::default(),
            header_forwarding: HeaderForwarding::default(),
            max_unread: 256 << 20,
            memory: MemoryBudget::unlimited(),
            // Triton takes two by default; more cores than that are for the models.
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

/// As long as the longest HTTP body by default. Triton takes whatever gRPC can carry.
const DEFAULT_MESSAGE_SIZE: usize = 64 << 20;
/// The longest message gRPC implementations agree on: the length is a signed 32-bit number in most.
const LONGEST_MESSAGE: usize = i32::MAX as usize;

//! Options that limit the use of the server by clients.

use std::time::Duration;

use galatea_command_line::{Kind, options, set};

use super::{
    super::setting,
    row::{Row, at_least},
};

pub const LIMITS: &[Row] = options! {
    /// Memory that requests and responses may take in all, in bytes, with a unit (512M, 4G), or as a share of what
    /// the machine and its control groups allow beyond what the server and its models hold. What comes beyond that is
    /// refused as 503 or RESOURCE_EXHAUSTED; requests in progress continue.
    "memory-budget" => Row::of(Kind::Form("<bytes>|<percent>%"))
        .default("50%").stores(|o, v| setting::memory_size(&mut o.serve.memory_budget, v)),
    /// Most requests that one client may have in progress, over all its connections: who it has proved to be with
    /// --auth-policy, else the address it comes from. What comes beyond that is refused as 429 or RESOURCE_EXHAUSTED.
    /// Without it there is no limit.
    "client-max-concurrent-requests" => Row::of(at_least(1))
        .fills(|o| &mut o.serve.client_limits.client.requests),
    /// Most bytes that the requests of one client may have together while in progress, in bytes or with a unit
    /// (64M, 1G). Without it there is no limit.
    "client-max-request-bytes" => Row::of(Kind::Form("<bytes>"))
        .stores(|o, v| setting::bytes(&mut o.serve.client_limits.client.bytes, v)),
    /// How many requests one client may send in a second, and how many at once after a pause: without a burst as many
    /// as in a second. Without it there is no limit.
    "client-requests-per-second" => Row::of(Kind::Form("<number>[:<burst>]"))
        .stores(setting::request_rate),
    /// Most requests in progress on one connection; those of a gRPC stream count each. Without it there is no limit.
    "connection-max-concurrent-requests" => Row::of(at_least(1))
        .fills(|o| &mut o.serve.client_limits.connection.requests),
    /// Most bytes that the requests on one connection may have together while in progress. Without it there is
    /// no limit.
    "connection-max-request-bytes" => Row::of(Kind::Form("<bytes>"))
        .stores(|o, v| setting::bytes(&mut o.serve.client_limits.connection.bytes, v)),
    /// Most connections of clients, to all endpoints together. Beyond it the longest idle one is closed for a new
    /// one. Without it, 8192 or as many as the limit of open file descriptors allows, with a quarter and no fewer
    /// than 64 kept for the server itself.
    "max-connections" => Row::of(at_least(1)).fills(|o| &mut o.serve.max_connections),
    /// A connection is closed when the head of a request has not come in this many seconds; 0 waits for ever.
    "connection-head-timeout-secs" => Row::of(at_least(0))
        .default("20")
        .stores(set!(|o, v| o.serve.connections.head_timeout = seconds(v.integer()?))),
    /// A connection is closed when the client sends, or reads, less than 256 bytes a second of a request or response
    /// in this many seconds; 0 waits for ever.
    "connection-progress-timeout-secs" => Row::of(at_least(0))
        .default("30")
        .stores(set!(|o, v| o.serve.connections.progress_timeout = seconds(v.integer()?))),
    /// A connection without requests is closed after this many seconds; 0 keeps it.
    "connection-idle-timeout-secs" => Row::of(at_least(0))
        .default("600")
        .stores(set!(|o, v| o.serve.connections.idle_timeout = seconds(v.integer()?))),
};

/// Returns a timeout; 0 means none.
fn seconds(count: u64) -> Duration {
    if count == 0 { Duration::MAX } else { Duration::from_secs(count) }
}

//! Options of what clients may take of the server.

use std::time::Duration;

use galatea_command_line::{Kind, set};

use super::{
    super::setting,
    row::{Row, at_least},
};

pub const LIMITS: &[Row] = &[
    Row::new(
        "memory-budget",
        Kind::Form("<bytes>|<percent>%"),
        "Memory that requests and responses may take in all, in bytes, with a unit (512M, 4G), or \
         as a share of what the machine and its control groups allow beyond what the server and \
         its models hold. What comes beyond that is refused as 503 or RESOURCE_EXHAUSTED; what \
         is in hand goes on.",
    )
    .default("50%")
    .stores(setting::memory_budget),
    Row::new(
        "client-max-concurrent-requests",
        at_least(1),
        "Most requests that one client may have in hand, over all its connections: who it has proved \
         to be with --auth-policy, else the address it comes from. What comes beyond that is refused \
         as 429 or RESOURCE_EXHAUSTED. Without it there is no limit.",
    )
    .stores(|o, v| v.put(&mut o.client_limits.client.requests)),
    Row::new(
        "client-max-request-bytes",
        Kind::Form("<bytes>"),
        "Most bytes that the requests of one client may have together while they are in hand, in \
         bytes or with a unit (64M, 1G). Without it there is no limit.",
    )
    .stores(|o, v| setting::bytes(v, &mut o.client_limits.client.bytes)),
    Row::new(
        "client-requests-per-second",
        Kind::Form("<number>[:<burst>]"),
        "How many requests one client may send in a second, and how many at once after a pause: \
         without a burst as many as in a second. Without it there is no limit.",
    )
    .stores(setting::request_rate),
    Row::new(
        "connection-max-concurrent-requests",
        at_least(1),
        "Most requests in hand on one connection; those of a gRPC stream count each. Without it \
         there is no limit.",
    )
    .stores(|o, v| v.put(&mut o.client_limits.connection.requests)),
    Row::new(
        "connection-max-request-bytes",
        Kind::Form("<bytes>"),
        "Most bytes that the requests on one connection may have together while they are in hand. \
         Without it there is no limit.",
    )
    .stores(|o, v| setting::bytes(v, &mut o.client_limits.connection.bytes)),
    Row::new(
        "max-connections",
        at_least(1),
        "Most connections of clients, to all endpoints together. Beyond it the longest idle one \
         is closed for a new one. Without it, 8192 or as many as the limit of open file \
         descriptors allows, with a quarter and no fewer than 64 kept for the server itself.",
    )
    .stores(set!(|o, v| o.max_connections = Some(v.integer()?))),
    Row::new(
        "connection-head-timeout-secs",
        at_least(0),
        "A connection is closed when the head of a request has not come in this many seconds; \
         0 waits for ever.",
    )
    .default("20")
    .stores(set!(|o, v| o.connections.head_timeout = seconds(v.integer()?))),
    Row::new(
        "connection-progress-timeout-secs",
        at_least(0),
        "A connection is closed when the client sends, or reads, less than 256 bytes a second \
         of a request or response in this many seconds; 0 waits for ever.",
    )
    .default("30")
    .stores(set!(|o, v| o.connections.progress_timeout = seconds(v.integer()?))),
    Row::new(
        "connection-idle-timeout-secs",
        at_least(0),
        "A connection without requests is closed after this many seconds; 0 keeps it.",
    )
    .default("600")
    .stores(set!(|o, v| o.connections.idle_timeout = seconds(v.integer()?))),
];

/// 0 is no time-out.
fn seconds(count: u64) -> Duration {
    if count == 0 { Duration::MAX } else { Duration::from_secs(count) }
}

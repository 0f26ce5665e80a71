//! Options that limit the use of the server by clients.

use std::time::Duration;

use galatea_command_line::{Kind, options, set};

use super::{
    super::setting,
    row::{Row, at_least},
};

pub const LIMITS: &[Row] = options! {
    /// Memory that all requests and responses together may take: bytes, a number with a unit (512M, 4G), or a share of
    /// the memory that the server and its models leave. The server refuses requests beyond it with 503 or
    /// RESOURCE_EXHAUSTED; requests in progress continue.
    "memory-budget" => Row::of(Kind::Form("<bytes>|<percent>%"))
        .default("50%").stores(|o, v| setting::memory_size(&mut o.serve.memory_budget, v)),
    /// Admission of requests by load: "on" refuses a request with 503 or UNAVAILABLE if its model cannot answer it before
    /// the deadline, or has more requests in progress than its throughput needs.
    "admission" => Row::of(Kind::Choice(&["off", "on"]))
        .default("off")
        .stores(set!(|o, v| o.serve.engine.has_admission = v.text.eq_ignore_ascii_case("on"))),
    /// Most requests in progress of one client, over all its connections. A client is an identity of --auth-policy,
    /// else an address. The server refuses more with 429 or RESOURCE_EXHAUSTED. Default: no limit.
    "client-max-concurrent-requests" => Row::of(at_least(1))
        .fills(|o| &mut o.serve.client_limits.client.requests),
    /// Most bytes of all requests in progress of one client, in bytes or with a unit (64M, 1G). Default: no limit.
    "client-max-request-bytes" => Row::of(Kind::Form("<bytes>"))
        .stores(|o, v| setting::bytes(&mut o.serve.client_limits.client.bytes, v)),
    /// Most requests of one client in a second, and most at once after a pause (the burst; without it as many as in a
    /// second). Default: no limit.
    "client-requests-per-second" => Row::of(Kind::Form("<number>[:<burst>]"))
        .stores(setting::request_rate),
    /// Most requests in progress on one connection. Each request of a gRPC stream counts. Default: no limit.
    "connection-max-concurrent-requests" => Row::of(at_least(1))
        .fills(|o| &mut o.serve.client_limits.connection.requests),
    /// Most bytes of all requests in progress on one connection. Default: no limit.
    "connection-max-request-bytes" => Row::of(Kind::Form("<bytes>"))
        .stores(|o, v| setting::bytes(&mut o.serve.client_limits.connection.bytes, v)),
    /// Most connections of clients to all endpoints together. A new connection beyond it closes the one idle for
    /// longest. Default: 8192, or fewer if the limit of open file descriptors requires it; the server keeps a quarter
    /// of them, at least 64, for itself.
    "max-connections" => Row::of(at_least(1)).fills(|o| &mut o.serve.max_connections),
    /// Seconds after which the server closes a connection that has not sent the whole head of a request; 0: never.
    "connection-head-timeout-secs" => Row::of(at_least(0))
        .default("20")
        .stores(set!(|o, v| o.serve.connections.head_timeout = seconds(v.integer()?))),
    /// Seconds after which the server closes a connection whose client sends or reads less than 256 bytes a second of a
    /// request or response; 0: never.
    "connection-progress-timeout-secs" => Row::of(at_least(0))
        .default("30")
        .stores(set!(|o, v| o.serve.connections.progress_timeout = seconds(v.integer()?))),
    /// Seconds after which the server closes a connection without requests; 0: never.
    "connection-idle-timeout-secs" => Row::of(at_least(0))
        .default("600")
        .stores(set!(|o, v| o.serve.connections.idle_timeout = seconds(v.integer()?))),
};

/// Returns a timeout; 0 means none.
fn seconds(count: u64) -> Duration {
    if count == 0 { Duration::MAX } else { Duration::from_secs(count) }
}
